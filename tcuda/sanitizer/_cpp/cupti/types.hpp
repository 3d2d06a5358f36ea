// The types and the constants of CUPTI that the core uses. Sizes, layouts and values are those of CUPTI's headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tcuda::cupti {

using Handle = std::uintptr_t; // a handle of CUDA or CUPTI

// CUpti_CallbackData
struct ApiCall {
    int site;
    const char *function_name;
    const void *parameters;
    void *result; // only at the exit
    const char *symbol_name;
    Handle context;
    std::uint32_t context_number;
    std::uint64_t *correlation_data;
    std::uint32_t correlation;
};

// CUpti_ResourceData
struct Resource {
    Handle context, stream;
    const void *description;
};

// CUpti_SubscriberParams
struct SubscriberParameters {
    std::size_t size;
    const char *name;
    char *other_name; // of the tool that has the subscription
    std::size_t other_name_size;
};

using Callback = void (*)(void *user, int domain, std::uint32_t id, const void *data);

constexpr int site_enter = 0, site_exit = 1;            // CUpti_ApiCallbackSite
constexpr int domain_driver = 1, domain_resource = 3;   // CUpti_CallbackDomain
constexpr std::uint32_t resource_context_destroyed = 2; // CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING

// CUptiResult
constexpr int ok = 0, invalid_parameter = 1, limit_reached = 12, not_compatible = 14, not_initialized = 15,
              not_supported = 27, insufficient_privileges = 35, several_subscribers = 39;

constexpr std::size_t other_name_room = 64; // CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN

} // namespace tcuda::cupti
