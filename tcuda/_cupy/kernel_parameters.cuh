// Lets the compiler tell the parameters of a kernel. This text follows the source of a user.
//
// The lowered name of tcuda_parameters<tcuda_of<type of a kernel>::tcuda_type> has three numbers for each parameter:
// the kind, the size and the alignment. So the numbers are known without a device, also for types that the source of
// the user defines. All names have a prefix, because the source may define macros of any other name.
struct __half;
struct __nv_bfloat16;
namespace tcuda_report {
template <int...> struct tcuda_numbers {};
template <class Tcuda, bool tcuda_is_enum = __is_enum(Tcuda)> struct tcuda_kind {
    static constexpr int tcuda_value = 's';
};
template <class Tcuda> struct tcuda_kind<Tcuda, true> {
    static constexpr int tcuda_value = tcuda_kind<__underlying_type(Tcuda)>::tcuda_value;
};
template <class Tcuda> struct tcuda_kind<Tcuda *, false> {
    static constexpr int tcuda_value = 'p';
};
#define TCUDA_KIND(tcuda_type, tcuda_letter) \
    template <> struct tcuda_kind<tcuda_type, false> { \
        static constexpr int tcuda_value = tcuda_letter; \
    };
TCUDA_KIND(decltype(nullptr), 'p')
TCUDA_KIND(bool, 'b')
TCUDA_KIND(char, char(-1) < char(1) ? 'i' : 'u')
TCUDA_KIND(signed char, 'i')
TCUDA_KIND(short, 'i')
TCUDA_KIND(int, 'i')
TCUDA_KIND(long, 'i')
TCUDA_KIND(long long, 'i')
TCUDA_KIND(unsigned char, 'u')
TCUDA_KIND(unsigned short, 'u')
TCUDA_KIND(unsigned int, 'u')
TCUDA_KIND(unsigned long, 'u')
TCUDA_KIND(unsigned long long, 'u')
TCUDA_KIND(wchar_t, wchar_t(-1) < wchar_t(1) ? 'i' : 'u')
TCUDA_KIND(char16_t, 'u')
TCUDA_KIND(char32_t, 'u')
TCUDA_KIND(float, 'f')
TCUDA_KIND(double, 'f')
TCUDA_KIND(__half, 'f')
TCUDA_KIND(__nv_bfloat16, 'g')
#undef TCUDA_KIND
template <class TcudaDone, class... Tcuda> struct tcuda_each {
    using tcuda_type = TcudaDone;
};
template <int... tcuda_done, class Tcuda, class... TcudaMore>
struct tcuda_each<tcuda_numbers<tcuda_done...>, Tcuda, TcudaMore...> {
    using tcuda_type = typename tcuda_each<
        tcuda_numbers<tcuda_done..., tcuda_kind<Tcuda>::tcuda_value, int(sizeof(Tcuda)), int(alignof(Tcuda))>,
        TcudaMore...>::tcuda_type;
};
template <class TcudaKernel> struct tcuda_of;
template <class... Tcuda> struct tcuda_of<void (*)(Tcuda...)> {
    using tcuda_type = typename tcuda_each<tcuda_numbers<>, Tcuda...>::tcuda_type;
};
template <class TcudaParameters> __global__ void tcuda_parameters() {}
} // namespace tcuda_report
