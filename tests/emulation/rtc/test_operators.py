"""Which operators of a source become those of a GPU, and which stay, because they are none or need none."""

from __future__ import annotations

import pytest

from tcuda.emulation.rtc import conversions, operators

pytestmark = pytest.mark.emulated

CHANGED = {
    "x = a << b;": "x = a << ::tcuda::left << b;",
    "x = a + b >> c - 1;": "x = a + b >> ::tcuda::right >> c - 1;",
    "x >>= n;": "x >>= ::tcuda::count = n;",
    "x = 1 << 3 * n;": "x = 1 << ::tcuda::left << 3 * n;",
    "x = 1ull << 40;": "x = 1ull << ::tcuda::left << 40;",
    "x = a << 010;": "x = a << ::tcuda::left << 010;",
    "if (a < b && c < d >> e) f();": "if (a < b && c < d >> ::tcuda::right >> e) f();",
    "g(a < b, c < d, e >> 32);": "g(a < b, c < d, e >> ::tcuda::right >> 32);",
    "x = t[i[0]] >> n;": "x = t[i[0]] >> ::tcuda::right >> n;",
    "#define BIT(x) (1 << (x))": "#define BIT(x) (1 << ::tcuda::left << (x))",
    "#define TWO \\\n  (a >> b)": "#define TWO \\\n  (a >> ::tcuda::right >> b)",
    "x = (int)y;": "x = (int)(::tcuda::Cast< int>)y;",
    "x = (unsigned char)-y;": "x = (unsigned char)(::tcuda::Cast< unsigned char>)-y;",
    "x = (const int)(y);": "x = (const int)(::tcuda::Cast< const int>)(y);",
    "x = (int)(float)y;": "x = (int)(::tcuda::Cast< int>)(float)y;",
    "x = (float)(int)y;": "x = (float)(int)(::tcuda::Cast< int>)y;",
    "x = (mine)y;": "x = (mine)(::tcuda::Cast< mine>)y;",
    "typedef int mine; x = (mine)(y);": "typedef int mine; x = (mine)(::tcuda::Cast< mine>)(y);",
    "using A = short; x = A(y);": "using A = short; x = A((::tcuda::Cast< A>)(y));",
    "template <class T> T f(float y) { return (T)*y; }": (
        "template <class T> T f(float y) { return (T)(::tcuda::Cast< T>)*y; }"
    ),
    "x = static_cast<int>(y[i[0]]);": "x = static_cast<int>((::tcuda::Cast< int>)(y[i[0]]));",
    "x = static_cast<A<B>>(y);": "x = static_cast<A<B>>((::tcuda::Cast< A<B>>)(y));",
    "x = f(int(y), z);": "x = f(int((::tcuda::Cast< int>)(y)), z);",
    "x =\n#line 7\n(int)y": "x =\n#line 7\n(int)(::tcuda::Cast< int>)y",
}
KEPT = [
    "x = a << 3;",
    "x = a >> 0x1f;",
    "std::vector<std::vector<int>> x;",
    "f<A<B>>(x); template <class T, class U = A<B<int>>> struct C;",
    "Stream& operator<<(Stream&, int); Stream& operator>>=(Stream&, int);",
    "x = (args << ... << last);",
    "#if FLAGS << N\n#endif",
    '#include <a/b>>\nx = "a << b"; // a << b',
    "int f(int); int g(int) const; void (*h)(int) = f;",
    "x = sizeof(int) + sizeof (int);",
    "x = [](int) -> int { return 1; };",
    "x = (a) - b; x = (f)(y); x = (a) and b;",
    "x = (float)y; x = (void)y; x = (bool)y; x = (int*)y; x = (A&)y;",
    "x = static_cast<float*>(y) + static_cast<const A&>(z) + static_cast<double>(z);",
    "function<int(float)> f; int (y); g(int(*h)(float));",
    "typedef struct { int x; } T; T(y);",
]


@pytest.mark.parametrize("source", CHANGED)
def test_operators_become_those_of_a_gpu(source):
    assert operators.rewritten(source) == CHANGED[source]


@pytest.mark.parametrize("source", KEPT)
def test_other_tokens_stay(source):
    assert operators.rewritten(source) == source


def test_underlined_expressions_become_calls():
    source = "x = in[0] +\n  in[1]; y += z;\nz = w;"
    messages = """\
kernel.cu: In function 'f':
kernel.cu:1:11: warning: conversion from 'float' to 'int' may change value [-Wfloat-conversion]
    1 | x = in[0] +
      |     ~~~~~~^
    2 |   in[1]; y += z;
      |   ~~~~~
kernel.cu:2:12: warning: conversion from 'double' to 'T' {aka 'short int'} may change value [-Wfloat-conversion]
    2 |   in[1]; y += z;
      |          ~~^~~~
kernel.cu:3:3: warning: conversion from 'double' to 'int' may change value [-Wfloat-conversion]
    3 | z = w;
      | ~~^~~
kernel.cu:3:5: warning: conversion from 'double' to 'float' may change value [-Wfloat-conversion]
    3 | z = w;
      |     ^
"""
    assert conversions.are_in(messages, [])
    assert conversions.rewritten(source, messages, "kernel.cu") == (
        "x = ::tcuda::implicit(in[0] +\n  in[1]); y += ::tcuda::operand = z;\nz = ::tcuda::converted = w;"
    )
    assert conversions.without_warnings(messages) == "kernel.cu: In function 'f':\n"
    assert not conversions.are_in(messages, ["kernel"])


def test_messages_of_clang_about_implicit_conversions():
    """Clang counts bytes, and tells the place in the macro in a note."""
    source = "#define SET(t, v) t = v\n/* \u00e9 */ x = a + b; y += z;\nSET(x, a); SET(q, a); if (a) f(); c = 2.5;"
    told = "implicit conversion turns floating-point number into integer: 'float' to "
    flag = "[-Wfloat-conversion]"
    messages = (
        f"kernel.cu:2:16:{{2:14-2:19}}{{2:12-2:13}}: warning: {told}'int' {flag}\n"
        f"kernel.cu:2:23:{{2:21-2:27}}{{2:23-2:25}}: warning: {told}'T' (aka 'int') {flag}\n"
        f"kernel.cu:3:8:{{3:1-3:10}}{{3:1-3:10}}: warning: {told}'int' {flag}\n"
        "kernel.cu:1:23:{1:23-1:24}{1:21-1:22}: note: expanded from macro 'SET'\n"
        f"kernel.cu:3:19:{{3:12-3:21}}: warning: {told}'int' {flag}\n"
        "other.h:1:23:{1:23-1:24}: note: expanded from macro 'SET'\n"
        f"kernel.cu:3:27:{{3:27-3:28}}: warning: {told}'bool' {flag}\n"
        "kernel.cu:3:39:{3:39-3:42}: warning: implicit conversion from 'double' to 'int' changes value from 2.5 to 2 "
        "[-Wliteral-conversion]\n"
    )
    assert conversions.are_in(messages, [])
    assert conversions.rewritten(source, messages, "kernel.cu") == (
        "#define SET(t, v) t = ::tcuda::implicit(v)\n"
        "/* \u00e9 */ x = ::tcuda::implicit(a + b); y += ::tcuda::operand = z;\n"
        "SET(x, a); SET(q, a); if (a) f(); c = ::tcuda::implicit(2.5);"
    )
    assert not conversions.are_in(f"kernel.cu:3:27: warning: {told}'bool' {flag}\n", [])


def test_messages_of_clang_are_shown_without_those_about_implicit_conversions():
    told = (
        "warning: implicit conversion turns floating-point number into integer: 'float' to 'int' [-Wfloat-conversion]"
    )
    messages = (
        f"tcuda/some.h:3:8: {told}\nSET(x, a);\n~~~^~~~\nkernel.cu:1:23: note: expanded from macro 'SET'\n"
        "kernel.cu:2:5: warning: unused variable 'x'\n  int x;\n      ^\n"
        f"tcuda/some.h:9:8: {told}\n2 warnings generated.\n"
    )
    assert conversions.without_warnings(messages) == (
        "kernel.cu:2:5: warning: unused variable 'x'\n  int x;\n      ^\n"
    )


def test_lines_that_name_other_files_are_empty():
    assert conversions.without_names('a\n#line 1 "b"\n  # 7 "c"\n#define line 1\n') == "a\n\n\n#define line 1\n"
