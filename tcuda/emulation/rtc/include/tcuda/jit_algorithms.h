// The algorithms of Thrust that kernels in Python call (cupyx.jit.thrust). The calling thread runs an algorithm alone.
#pragma once

#include "tcuda/jit.h"

namespace tcuda {
namespace jit {

template <class T> struct Constants {
    using value_type = T;
    T value;
    ptrdiff_t place = 0;

    T operator[](ptrdiff_t) const { return value; }
    T operator*() const { return value; }
    Constants operator+(ptrdiff_t count) const { return {value, place + count}; }
    Constants operator-(ptrdiff_t count) const { return {value, place - count}; }
    ptrdiff_t operator-(const Constants &other) const { return place - other.place; }
};

template <class T> struct Counting {
    using value_type = T;
    T value;

    T operator[](ptrdiff_t index) const { return value + static_cast<T>(index); }
    T operator*() const { return value; }
    Counting operator+(ptrdiff_t count) const { return {static_cast<T>(value + count)}; }
    Counting operator-(ptrdiff_t count) const { return {static_cast<T>(value - count)}; }
    ptrdiff_t operator-(const Counting &other) const { return static_cast<ptrdiff_t>(value - other.value); }
};

template <class It> struct Elements {
    using type = typename It::value_type;
};
template <class T> struct Elements<T *> {
    using type = T;
};
template <class It> using element = typename Elements<It>::type;

// Copies, searches and changes of single elements.

template <class In, class Out> Out copy(In first, In last, Out result) {
    const ptrdiff_t count = last - first;
    for (ptrdiff_t i = 0; i < count; ++i) result[i] = first[i];
    return result + count;
}
template <class It, class T> void fill(It first, It last, const T &value) {
    for (ptrdiff_t i = 0; i < last - first; ++i) first[i] = value;
}
template <class It> void sequence(It first, It last, element<It> init = 0, element<It> step = 1) {
    for (ptrdiff_t i = 0; i < last - first; ++i) first[i] = init + static_cast<element<It>>(i) * step;
}
template <class It, class T> It find(It first, It last, const T &value) {
    ptrdiff_t i = 0;
    while (i < last - first && !(first[i] == value)) ++i;
    return first + i;
}
template <class It, class T> int count(It first, It last, const T &value) {
    int found = 0;
    for (ptrdiff_t i = 0; i < last - first; ++i) found += first[i] == value;
    return found;
}
template <class It1, class It2> Tuple<It1, It2> mismatch(It1 first1, It1 last1, It2 first2) {
    ptrdiff_t i = 0;
    while (i < last1 - first1 && first1[i] == first2[i]) ++i;
    return {first1 + i, first2 + i};
}
template <class It1, class It2> bool equal(It1 first1, It1 last1, It2 first2) {
    return get<0>(mismatch(first1, last1, first2)) == last1;
}
template <class Map, class In, class Out> Out gather(Map map_first, Map map_last, In input, Out result) {
    for (ptrdiff_t i = 0; i < map_last - map_first; ++i) result[i] = input[map_first[i]];
    return result + (map_last - map_first);
}
template <class In, class Map, class Out> void scatter(In first, In last, Map map, Out result) {
    for (ptrdiff_t i = 0; i < last - first; ++i) result[map[i]] = first[i];
}
template <class It, class T> void replace(It first, It last, const T &old_value, const T &new_value) {
    for (ptrdiff_t i = 0; i < last - first; ++i)
        if (first[i] == old_value) first[i] = new_value;
}
template <class In, class Out, class T>
Out replace_copy(In first, In last, Out result, const T &old_value, const T &new_value) {
    for (ptrdiff_t i = 0; i < last - first; ++i)
        result[i] = first[i] == old_value ? static_cast<element<Out>>(new_value) : first[i];
    return result + (last - first);
}
template <class In, class Out, class T> Out remove_copy(In first, In last, Out result, const T &value) {
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < last - first; ++i)
        if (!(first[i] == value)) result[kept++] = first[i];
    return result + kept;
}
template <class It, class T> It remove(It first, It last, const T &value) {
    return remove_copy(first, last, first, value);
}
template <class It1, class It2> It2 swap_ranges(It1 first1, It1 last1, It2 first2) {
    for (ptrdiff_t i = 0; i < last1 - first1; ++i) {
        const element<It1> held = first1[i];
        first1[i] = first2[i];
        first2[i] = held;
    }
    return first2 + (last1 - first1);
}
template <class In, class Out> Out reverse_copy(In first, In last, Out result) {
    const ptrdiff_t count = last - first;
    for (ptrdiff_t i = 0; i < count; ++i) result[i] = first[count - 1 - i];
    return result + count;
}
template <class It> void reverse(It first, It last) {
    for (ptrdiff_t i = 0, j = last - first - 1; i < j; ++i, --j) {
        const element<It> held = first[i];
        first[i] = first[j];
        first[j] = held;
    }
}

// Sums and differences.

template <class It, class T> T reduce(It first, It last, T init) {
    for (ptrdiff_t i = 0; i < last - first; ++i) init = init + first[i];
    return init;
}
template <class It> element<It> reduce(It first, It last) { return reduce(first, last, element<It>(0)); }
template <class It1, class It2, class T> T inner_product(It1 first1, It1 last1, It2 first2, T init) {
    for (ptrdiff_t i = 0; i < last1 - first1; ++i) init = init + first1[i] * first2[i];
    return init;
}
template <class In, class Out> Out adjacent_difference(In first, In last, Out result) {
    element<In> before{};
    for (ptrdiff_t i = 0; i < last - first; ++i) {
        const element<In> value = first[i];
        result[i] = i == 0 ? value : value - before;
        before = value;
    }
    return result + (last - first);
}
template <class In, class Out> Out inclusive_scan(In first, In last, Out result) {
    element<In> sum(0);
    for (ptrdiff_t i = 0; i < last - first; ++i) result[i] = sum = sum + first[i];
    return result + (last - first);
}
template <class In, class Out, class T> Out exclusive_scan(In first, In last, Out result, T init) {
    for (ptrdiff_t i = 0; i < last - first; ++i) {
        const T sum = init;
        init = init + first[i];
        result[i] = sum;
    }
    return result + (last - first);
}
template <class In, class Out> Out exclusive_scan(In first, In last, Out result) {
    return exclusive_scan(first, last, result, element<In>(0));
}
template <class Key, class In, class Out> Out inclusive_scan_by_key(Key first1, Key last1, In first2, Out result) {
    element<In> sum(0);
    for (ptrdiff_t i = 0; i < last1 - first1; ++i)
        result[i] = sum = i != 0 && first1[i] == first1[i - 1] ? sum + first2[i] : first2[i];
    return result + (last1 - first1);
}
template <class Key, class In, class Out, class T>
Out exclusive_scan_by_key(Key first1, Key last1, In first2, Out result, T init) {
    T sum = init;
    for (ptrdiff_t i = 0; i < last1 - first1; ++i) {
        if (i != 0 && !(first1[i] == first1[i - 1])) sum = init;
        const T before = sum;
        sum = sum + first2[i];
        result[i] = before;
    }
    return result + (last1 - first1);
}
template <class Key, class In, class Out> Out exclusive_scan_by_key(Key first1, Key last1, In first2, Out result) {
    return exclusive_scan_by_key(first1, last1, first2, result, element<In>(0));
}
template <class Key, class In, class KeyOut, class Out>
Tuple<KeyOut, Out> reduce_by_key(Key first, Key last, In values, KeyOut keys_output, Out values_output) {
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < last - first;) {
        const element<Key> key = first[i];
        element<In> sum = values[i];
        for (++i; i < last - first && first[i] == key; ++i) sum = sum + values[i];
        keys_output[kept] = key;
        values_output[kept++] = sum;
    }
    return {keys_output + kept, values_output + kept};
}
template <class Key, class It> Tuple<Key, It> unique_by_key(Key first, Key last, It values) {
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < last - first; ++i) {
        if (kept != 0 && first[i] == first[kept - 1]) continue;
        first[kept] = first[i];
        values[kept++] = values[i];
    }
    return {first + kept, values + kept};
}
template <class It> It unique(It first, It last) {
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < last - first; ++i)
        if (kept == 0 || !(first[i] == first[kept - 1])) first[kept++] = first[i];
    return first + kept;
}

// Searches in sorted elements.

template <class It> It is_sorted_until(It first, It last) {
    ptrdiff_t i = 1;
    while (i < last - first && !(first[i] < first[i - 1])) ++i;
    return i < last - first ? first + i : last;
}
template <class It> bool is_sorted(It first, It last) { return is_sorted_until(first, last) == last; }

template <class It, class T> It lower_bound(It first, It last, const T &value) {
    ptrdiff_t low = 0, high = last - first;
    while (low < high) {
        const ptrdiff_t middle = low + (high - low) / 2;
        if (first[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return first + low;
}
template <class It, class T> It upper_bound(It first, It last, const T &value) {
    ptrdiff_t low = 0, high = last - first;
    while (low < high) {
        const ptrdiff_t middle = low + (high - low) / 2;
        if (value < first[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return first + low;
}
template <class It, class T> Tuple<It, It> equal_range(It first, It last, const T &value) {
    return {lower_bound(first, last, value), upper_bound(first, last, value)};
}
template <class It, class T> bool binary_search(It first, It last, const T &value) {
    const It found = lower_bound(first, last, value);
    return !(found == last) && !(value < *found);
}
template <class It, class In, class Out> Out lower_bound(It first, It last, In from, In to, Out result) {
    for (ptrdiff_t i = 0; i < to - from; ++i) result[i] = lower_bound(first, last, from[i]) - first;
    return result + (to - from);
}
template <class It, class In, class Out> Out upper_bound(It first, It last, In from, In to, Out result) {
    for (ptrdiff_t i = 0; i < to - from; ++i) result[i] = upper_bound(first, last, from[i]) - first;
    return result + (to - from);
}
template <class It, class In, class Out> Out binary_search(It first, It last, In from, In to, Out result) {
    for (ptrdiff_t i = 0; i < to - from; ++i) result[i] = binary_search(first, last, from[i]);
    return result + (to - from);
}

// Stable sorting in place: sorted halves are merged by rotations.

template <class Key> struct Keys {
    Key keys;

    bool less(ptrdiff_t i, ptrdiff_t j) const { return keys[i] < keys[j]; }
    void exchange(ptrdiff_t i, ptrdiff_t j) const {
        const element<Key> held = keys[i];
        keys[i] = keys[j];
        keys[j] = held;
    }
};
template <class Key, class It> struct KeysAndValues {
    Key keys;
    It values;

    bool less(ptrdiff_t i, ptrdiff_t j) const { return keys[i] < keys[j]; }
    void exchange(ptrdiff_t i, ptrdiff_t j) const {
        Keys<Key>{keys}.exchange(i, j);
        Keys<It>{values}.exchange(i, j);
    }
};

template <class Rows> void reverse_rows(const Rows &rows, ptrdiff_t first, ptrdiff_t last) {
    for (; first < --last; ++first) rows.exchange(first, last);
}
// Lets the rows from `middle` come before the rows from `first`.
template <class Rows> void rotate_rows(const Rows &rows, ptrdiff_t first, ptrdiff_t middle, ptrdiff_t last) {
    reverse_rows(rows, first, middle);
    reverse_rows(rows, middle, last);
    reverse_rows(rows, first, last);
}
template <class Rows> void merge_rows(const Rows &rows, ptrdiff_t first, ptrdiff_t middle, ptrdiff_t last) {
    if (first == middle || middle == last) return;
    if (last - first == 2) {
        if (rows.less(middle, first)) rows.exchange(first, middle);
        return;
    }
    // The longer half is cut in its middle, and the other half where the row at the cut belongs.
    ptrdiff_t left, right;
    if (middle - first > last - middle) {
        left = first + (middle - first) / 2;
        right = middle;
        for (ptrdiff_t high = last; right < high;) {
            const ptrdiff_t probe = right + (high - right) / 2;
            if (rows.less(probe, left))
                right = probe + 1;
            else
                high = probe;
        }
    } else {
        right = middle + (last - middle) / 2;
        left = first;
        for (ptrdiff_t high = middle; left < high;) {
            const ptrdiff_t probe = left + (high - left) / 2;
            if (rows.less(right, probe))
                high = probe;
            else
                left = probe + 1;
        }
        ++right;
        if (left == middle) return merge_rows(rows, first, middle, right - 1);
    }
    rotate_rows(rows, left, middle, right);
    const ptrdiff_t joint = left + (right - middle);
    merge_rows(rows, first, left, joint);
    merge_rows(rows, joint, right, last);
}
template <class Rows> void sort_rows(const Rows &rows, ptrdiff_t count) {
    const ptrdiff_t run = 16;
    for (ptrdiff_t first = 0; first < count; first += run)
        for (ptrdiff_t i = first + 1; i < count && i < first + run; ++i)
            for (ptrdiff_t j = i; j > first && rows.less(j, j - 1); --j) rows.exchange(j, j - 1);
    for (ptrdiff_t width = run; width < count; width *= 2)
        for (ptrdiff_t first = 0; first + width < count; first += 2 * width)
            merge_rows(rows, first, first + width, first + 2 * width < count ? first + 2 * width : count);
}

template <class Key> void stable_sort(Key first, Key last) { sort_rows(Keys<Key>{first}, last - first); }
template <class Key> void sort(Key first, Key last) { stable_sort(first, last); }
template <class Key, class It> void stable_sort_by_key(Key first, Key last, It values) {
    sort_rows(KeysAndValues<Key, It>{first, values}, last - first);
}
template <class Key, class It> void sort_by_key(Key first, Key last, It values) {
    stable_sort_by_key(first, last, values);
}

// Sets, whose elements are sorted. The rows of a set are written in order: `first` says whether a row of the first set,
// `second` whether a row of the second set, and `both` whether a row of both sets belongs to the result.
template <bool first, bool second, bool both, class K1, class K2, class Write>
void set_rows(K1 first1, K1 last1, K2 first2, K2 last2, Write write) {
    const ptrdiff_t n = last1 - first1, m = last2 - first2;
    ptrdiff_t i = 0, j = 0;
    while (i < n || j < m) {
        const bool from_first = j == m || (i < n && first1[i] < first2[j]);
        const bool from_second = !from_first && (i == n || first2[j] < first1[i]);
        if (from_second) {
            if (second) write(false, j);
            ++j;
        } else {
            if (from_first ? first : both) write(true, i);
            ++i;
            j += !from_first;
        }
    }
}

template <bool first, bool second, bool both, class K1, class K2, class Out>
Out set_of(K1 first1, K1 last1, K2 first2, K2 last2, Out result) {
    ptrdiff_t kept = 0;
    set_rows<first, second, both>(first1, last1, first2, last2, [&](bool from_first, ptrdiff_t i) {
        result[kept++] = from_first ? first1[i] : first2[i];
    });
    return result + kept;
}
template <bool first, bool second, bool both, class K1, class K2, class V1, class V2, class KeyOut, class Out>
Tuple<KeyOut, Out> set_of(K1 first1, K1 last1, K2 first2, K2 last2, V1 values1, V2 values2, KeyOut keys, Out values) {
    ptrdiff_t kept = 0;
    set_rows<first, second, both>(first1, last1, first2, last2, [&](bool from_first, ptrdiff_t i) {
        keys[kept] = from_first ? first1[i] : first2[i];
        if (from_first)
            values[kept++] = values1[i];
        else
            values[kept++] = values2[i];
    });
    return {keys + kept, values + kept};
}

template <class... Args> auto set_union(Args... args) { return set_of<true, true, true>(args...); }
template <class... Args> auto set_union_by_key(Args... args) { return set_of<true, true, true>(args...); }
template <class... Args> auto set_difference(Args... args) { return set_of<true, false, false>(args...); }
template <class... Args> auto set_difference_by_key(Args... args) { return set_of<true, false, false>(args...); }
template <class... Args> auto set_symmetric_difference(Args... args) { return set_of<true, true, false>(args...); }
template <class... Args> auto set_symmetric_difference_by_key(Args... args) {
    return set_of<true, true, false>(args...);
}
template <class... Args> auto set_intersection(Args... args) { return set_of<false, false, true>(args...); }
template <class K1, class K2, class V1, class KeyOut, class Out>
Tuple<KeyOut, Out>
set_intersection_by_key(K1 first1, K1 last1, K2 first2, K2 last2, V1 values1, KeyOut keys, Out values) {
    return set_of<false, false, true>(first1, last1, first2, last2, values1, values1, keys, values);
}

} // namespace jit
} // namespace tcuda
