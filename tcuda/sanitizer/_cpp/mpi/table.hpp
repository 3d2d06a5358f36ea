// The functions of MPI that use memory, and what each argument is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace tcuda::mpi {

constexpr std::uint8_t no_place = 255; // the place of an argument that the function does not have

// What a call does.
enum class Action : std::uint8_t {
    use,      // uses the memory until the call returns
    begin,    // uses the memory until the request is complete
    prepare,  // makes a request that start() can begin again and again
    start,    // begins a prepared request
    start_all,
    wait,      // waits for one request
    wait_all,  // waits for all requests of an array
    wait_any,  // waits for one request of an array
    wait_some, // waits for some requests of an array
    test,      // tests one request: a flag tells whether the request is complete
    test_all,
    test_any,
    test_some, // as wait_some
    status,    // as test, with the request itself in place of its address
    release,   // the program gives the request up
};

// How the elements of a buffer are counted, beside the argument with the count.
enum class Counted : std::uint8_t {
    once,      // the count
    each_rank, // the count, for each rank
    by_rank,   // an array with a count for each rank, and an array of displacements
    shares,    // an array with a count for each rank, one after the other
    own_share, // the count of this rank in such an array
};

// Who uses a buffer.
enum class Who : std::uint8_t { everyone, root, others, to, from };

enum class Kind : std::uint8_t { none, read, write };

// A buffer of a call, by the places of its arguments.
struct Buffer {
    Kind kind = Kind::none;
    std::string_view label;
    std::uint8_t address = 0, count = 0, displacements = 0, type = 0;
    Counted counted = Counted::once;
    Who who = Who::everyone;
    std::uint8_t peer = 0; // the rank of the root, or of the other side
};

struct Function {
    std::string_view name;
    std::uint8_t arguments = 0;
    Action action = Action::use;
    std::uint8_t comm = 0;    // the place of the communicator
    std::uint8_t request = 0; // the place of the request or of the array of requests
    std::array<Buffer, 2> buffers{};

    constexpr bool is_collective() const {
        return comm != no_place && buffers[0].who != Who::to && buffers[0].who != Who::from;
    }
};

namespace rows {

constexpr Buffer buffer(Kind kind, std::string_view label, std::uint8_t address, std::uint8_t count, std::uint8_t type,
                        Counted counted = Counted::once, Who who = Who::everyone, std::uint8_t peer = no_place,
                        std::uint8_t displacements = no_place) {
    return {kind, label, address, count, displacements, type, counted, who, peer};
}

// Point to point: buf, count, type, peer, tag, comm
constexpr Buffer sent = buffer(Kind::read, "buf", 0, 1, 2, Counted::once, Who::to, 3);
constexpr Buffer received = buffer(Kind::write, "buf", 0, 1, 2, Counted::once, Who::from, 3);

constexpr Function send(std::string_view name) { return {name, 6, Action::use, 5, no_place, {sent}}; }
constexpr Function isend(std::string_view name, Action action = Action::begin) {
    return {name, 7, action, 5, 6, {sent}};
}
constexpr Function irecv(std::string_view name, Action action = Action::begin) {
    return {name, 7, action, 5, 6, {received}};
}
// sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm
constexpr std::array<Buffer, 2> exchanged = {
    buffer(Kind::read, "sendbuf", 0, 1, 2, Counted::once, Who::to, 3),
    buffer(Kind::write, "recvbuf", 5, 6, 7, Counted::once, Who::from, 8),
};

// A collective and its nonblocking and persistent forms: `blocking` arguments, then the request at the end.
constexpr Function collective(std::string_view name, std::uint8_t arguments, std::array<Buffer, 2> buffers,
                              Action action, std::uint8_t extra) {
    return {name,
            static_cast<std::uint8_t>(arguments + extra),
            action,
            static_cast<std::uint8_t>(arguments - 1),
            action == Action::use ? no_place : static_cast<std::uint8_t>(arguments + extra - 1),
            buffers};
}

constexpr std::array<Buffer, 2> bcast = {
    buffer(Kind::read, "buf", 0, 1, 2, Counted::once, Who::root, 3),
    buffer(Kind::write, "buf", 0, 1, 2, Counted::once, Who::others, 3),
};
constexpr std::array<Buffer, 2> reduce = {
    buffer(Kind::read, "sendbuf", 0, 2, 3),
    buffer(Kind::write, "recvbuf", 1, 2, 3, Counted::once, Who::root, 5),
};
constexpr std::array<Buffer, 2> allreduce = {
    buffer(Kind::read, "sendbuf", 0, 2, 3),
    buffer(Kind::write, "recvbuf", 1, 2, 3),
};
constexpr std::array<Buffer, 2> reduce_scatter_block = {
    buffer(Kind::read, "sendbuf", 0, 2, 3, Counted::each_rank),
    buffer(Kind::write, "recvbuf", 1, 2, 3),
};
constexpr std::array<Buffer, 2> reduce_scatter = {
    buffer(Kind::read, "sendbuf", 0, 2, 3, Counted::shares),
    buffer(Kind::write, "recvbuf", 1, 2, 3, Counted::own_share),
};
constexpr std::array<Buffer, 2> gather = {
    buffer(Kind::read, "sendbuf", 0, 1, 2),
    buffer(Kind::write, "recvbuf", 3, 4, 5, Counted::each_rank, Who::root, 6),
};
constexpr std::array<Buffer, 2> scatter = {
    buffer(Kind::read, "sendbuf", 0, 1, 2, Counted::each_rank, Who::root, 6),
    buffer(Kind::write, "recvbuf", 3, 4, 5),
};
constexpr std::array<Buffer, 2> allgather = {
    buffer(Kind::read, "sendbuf", 0, 1, 2),
    buffer(Kind::write, "recvbuf", 3, 4, 5, Counted::each_rank),
};
constexpr std::array<Buffer, 2> alltoall = {
    buffer(Kind::read, "sendbuf", 0, 1, 2, Counted::each_rank),
    buffer(Kind::write, "recvbuf", 3, 4, 5, Counted::each_rank),
};
constexpr std::array<Buffer, 2> gatherv = {
    buffer(Kind::read, "sendbuf", 0, 1, 2),
    buffer(Kind::write, "recvbuf", 3, 4, 6, Counted::by_rank, Who::root, 7, 5),
};
constexpr std::array<Buffer, 2> scatterv = {
    buffer(Kind::read, "sendbuf", 0, 1, 3, Counted::by_rank, Who::root, 7, 2),
    buffer(Kind::write, "recvbuf", 4, 5, 6),
};
constexpr std::array<Buffer, 2> allgatherv = {
    buffer(Kind::read, "sendbuf", 0, 1, 2),
    buffer(Kind::write, "recvbuf", 3, 4, 6, Counted::by_rank, Who::everyone, no_place, 5),
};
constexpr std::array<Buffer, 2> alltoallv = {
    buffer(Kind::read, "sendbuf", 0, 1, 3, Counted::by_rank, Who::everyone, no_place, 2),
    buffer(Kind::write, "recvbuf", 4, 5, 7, Counted::by_rank, Who::everyone, no_place, 6),
};

// The blocking form, the nonblocking form, and the persistent form, which has an info before the request.
#define TCUDA_MPI_COLLECTIVE(name, lower, arguments, buffers)                                                          \
    collective("MPI_" name, arguments, buffers, Action::use, 0),                                                       \
        collective("MPI_I" lower, arguments, buffers, Action::begin, 1),                                               \
        collective("MPI_" name "_init", arguments, buffers, Action::prepare, 2)

inline constexpr Function functions[] = {
    send("MPI_Send"),
    send("MPI_Bsend"),
    send("MPI_Ssend"),
    send("MPI_Rsend"),
    isend("MPI_Isend"),
    isend("MPI_Ibsend"),
    isend("MPI_Issend"),
    isend("MPI_Irsend"),
    isend("MPI_Send_init", Action::prepare),
    isend("MPI_Bsend_init", Action::prepare),
    isend("MPI_Ssend_init", Action::prepare),
    isend("MPI_Rsend_init", Action::prepare),
    {"MPI_Recv", 7, Action::use, 5, no_place, {received}},
    irecv("MPI_Irecv"),
    irecv("MPI_Recv_init", Action::prepare),
    // buf, count, type, message, request
    {"MPI_Imrecv", 5, Action::begin, no_place, 4, {buffer(Kind::write, "buf", 0, 1, 2)}},
    {"MPI_Mrecv", 5, Action::use, no_place, no_place, {buffer(Kind::write, "buf", 0, 1, 2)}},
    {"MPI_Sendrecv", 12, Action::use, 10, no_place, exchanged},
    {"MPI_Isendrecv", 12, Action::begin, 10, 11, exchanged},
    TCUDA_MPI_COLLECTIVE("Bcast", "bcast", 5, bcast),
    TCUDA_MPI_COLLECTIVE("Reduce", "reduce", 7, reduce),
    TCUDA_MPI_COLLECTIVE("Allreduce", "allreduce", 6, allreduce),
    TCUDA_MPI_COLLECTIVE("Scan", "scan", 6, allreduce),
    TCUDA_MPI_COLLECTIVE("Exscan", "exscan", 6, allreduce),
    TCUDA_MPI_COLLECTIVE("Reduce_scatter_block", "reduce_scatter_block", 6, reduce_scatter_block),
    TCUDA_MPI_COLLECTIVE("Reduce_scatter", "reduce_scatter", 6, reduce_scatter),
    TCUDA_MPI_COLLECTIVE("Gather", "gather", 8, gather),
    TCUDA_MPI_COLLECTIVE("Scatter", "scatter", 8, scatter),
    TCUDA_MPI_COLLECTIVE("Allgather", "allgather", 7, allgather),
    TCUDA_MPI_COLLECTIVE("Alltoall", "alltoall", 7, alltoall),
    TCUDA_MPI_COLLECTIVE("Gatherv", "gatherv", 9, gatherv),
    TCUDA_MPI_COLLECTIVE("Scatterv", "scatterv", 9, scatterv),
    TCUDA_MPI_COLLECTIVE("Allgatherv", "allgatherv", 8, allgatherv),
    TCUDA_MPI_COLLECTIVE("Alltoallv", "alltoallv", 9, alltoallv),
    {"MPI_Start", 1, Action::start, no_place, 0, {}},
    {"MPI_Startall", 2, Action::start_all, no_place, 1, {}},
    {"MPI_Wait", 2, Action::wait, no_place, 0, {}},
    {"MPI_Waitall", 3, Action::wait_all, no_place, 1, {}},
    {"MPI_Waitany", 4, Action::wait_any, no_place, 1, {}},
    {"MPI_Waitsome", 5, Action::wait_some, no_place, 1, {}},
    {"MPI_Test", 3, Action::test, no_place, 0, {}},
    {"MPI_Testall", 4, Action::test_all, no_place, 1, {}},
    {"MPI_Testany", 5, Action::test_any, no_place, 1, {}},
    {"MPI_Testsome", 5, Action::test_some, no_place, 1, {}},
    {"MPI_Request_get_status", 3, Action::status, no_place, 0, {}},
    {"MPI_Request_free", 1, Action::release, no_place, 0, {}},
};

#undef TCUDA_MPI_COLLECTIVE

} // namespace rows

using rows::functions;
constexpr std::size_t function_count = std::size(functions);

} // namespace tcuda::mpi
