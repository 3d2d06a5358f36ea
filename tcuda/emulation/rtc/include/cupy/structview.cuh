// The class of an element of a structured array: its fields have numbers, and no names.
#pragma once

namespace cupy {

template <size_t size, size_t alignment>
struct alignas(alignment) raw_structview_storage {
    char bytes[size];
};

// A field with its type and the number of bytes before it.
template <class T, size_t before>
struct Field {
    using type = T;
    static constexpr size_t offset = before;
};

template <size_t number, class First, class... Others>
struct FieldAt : FieldAt<number - 1, Others...> {};
template <class First, class... Others>
struct FieldAt<0, First, Others...> {
    using type = First;
};

template <class Storage, class... Fields>
class StructView {
    Storage data_{};

    template <size_t number>
    using At = typename FieldAt<number, Fields...>::type;

    // Calls `work` for the numbers of all fields from `number` on.
    template <size_t number = 0, class Work>
    static void each(const Work &work) {
        if constexpr (number < sizeof...(Fields)) {
            work.template of<number>();
            each<number + 1>(work);
        }
    }

    template <class Other>
    struct Assign {
        StructView &target;
        const Other &source;
        template <size_t number>
        void of() const {
            target.template at<number>() = source.template at<number>();
        }
    };

    template <class T>
    struct Fill {
        StructView &target;
        const T &value;
        template <size_t number>
        void of() const {
            target.template at<number>() = value;
        }
    };

    template <class Other>
    struct Compare {
        const StructView &first;
        const Other &second;
        bool &equal;
        template <size_t number>
        void of() const {
            equal = equal && first.template at<number>() == second.template at<number>();
        }
    };

  public:
    static constexpr size_t size = sizeof(Storage), alignment = alignof(Storage), field_count = sizeof...(Fields);
    using storage_type = Storage;

    StructView() = default;
    StructView(const StructView &other) { *this = other; }
    template <class S, class... F>
    explicit StructView(const StructView<S, F...> &other) {
        *this = other;
    }
    template <class T>
    explicit StructView(const T &value) {
        *this = value;
    }

    // Bytes between the fields stay as they are.
    StructView &operator=(const StructView &other) {
        each(Assign<StructView>{*this, other});
        return *this;
    }
    template <class S, class... F>
    StructView &operator=(const StructView<S, F...> &other) {
        static_assert(sizeof...(F) == field_count, "the structures have other numbers of fields");
        each(Assign<StructView<S, F...>>{*this, other});
        return *this;
    }
    template <class T>
    StructView &operator=(const T &value) {
        each(Fill<T>{*this, value});
        return *this;
    }

    template <size_t number>
    auto &at() {
        return *reinterpret_cast<typename At<number>::type *>(data_.bytes + At<number>::offset);
    }
    template <size_t number>
    const auto &at() const {
        return *reinterpret_cast<const typename At<number>::type *>(data_.bytes + At<number>::offset);
    }

    template <class S, class... F>
    bool operator==(const StructView<S, F...> &other) const {
        static_assert(sizeof...(F) == field_count, "the structures have other numbers of fields");
        bool equal = true;
        each(Compare<StructView<S, F...>>{*this, other, equal});
        return equal;
    }
    template <class S, class... F>
    bool operator!=(const StructView<S, F...> &other) const {
        return !(*this == other);
    }
};

}  // namespace cupy
