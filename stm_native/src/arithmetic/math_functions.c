/* What CPython's `math` computes by itself, without the libm: the same steps, so the same bits.
 *
 * The gamma functions are Lanczos' approximation (g = 6.0246..., 13 terms) and its reflection; hypot
 * is a scaled sum of squares whose rounding errors are carried along and taken out by one step of
 * Newton's; fsum keeps an exact sum as doubles that do not overlap (Shewchuk 1997). The integer
 * functions are exact, or fail where the result is beyond `limit`. */

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "specstream_arithmetic.h"

__extension__ typedef unsigned __int128 uint128_t;

static const double pi = 0x1.921fb54442d18p+1;
static const double log_pi = 0x1.250d048e7a1bdp+0;

/* -- gamma -- */

static const double lanczos_g = 6.024680040776729583740234375;
static const double lanczos_g_less_half = 5.524680040776729583740234375;

static const double numerator[] = {
    23531376880.410759688572007674451636754734846804940,
    42919803642.649098768957899047001988850926355848959,
    35711959237.355668049440185451547166705960488635843,
    17921034426.037209699919755754458931112671403265390,
    6039542586.3520280050642916443072979210699388420708,
    1439720407.3117216736632230727949123939715485786772,
    248874557.86205415651146038641322942321632125127801,
    31426415.585400194380614231628318205362874684987640,
    2876370.6289353724412254090516208496135991145378768,
    186056.26539522349504029498971604569928220784236328,
    8071.6720023658162106380029022722506138218516325024,
    210.82427775157934587250973392071336271166969580291,
    2.5066282746310002701649081771338373386264310793408};

/* of x (x + 1) ... (x + 11) */
static const double denominator[] = {0.0,       39916800.0, 120543840.0, 150917976.0, 105258076.0,
                                     45995730.0, 13339535.0, 2637558.0,   357423.0,    32670.0,
                                     1925.0,     66.0,       1.0};

enum { TERMS = sizeof numerator / sizeof *numerator };

/* gamma(1) to gamma(23): the factorials that are doubles. */
static const double factorials[] = {1.0,
                                    1.0,
                                    2.0,
                                    6.0,
                                    24.0,
                                    120.0,
                                    720.0,
                                    5040.0,
                                    40320.0,
                                    362880.0,
                                    3628800.0,
                                    39916800.0,
                                    479001600.0,
                                    6227020800.0,
                                    87178291200.0,
                                    1307674368000.0,
                                    20922789888000.0,
                                    355687428096000.0,
                                    6402373705728000.0,
                                    121645100408832000.0,
                                    2432902008176640000.0,
                                    51090942171709440000.0,
                                    1124000727777607680000.0};

/* sin(pi * x) of a finite x, exact about whole numbers. */
static double sin_of_pi(double x)
{
    const double y = fmod(fabs(x), 2.0);
    double sine;

    switch ((int)round(2.0 * y)) {
    case 0:
        sine = sin(pi * y);
        break;
    case 1:
        sine = cos(pi * (y - 0.5));
        break;
    case 2: /* of 1 - y and not of y - 1, so that a zero is positive */
        sine = sin(pi * (1.0 - y));
        break;
    case 3:
        sine = -cos(pi * (y - 1.5));
        break;
    default:
        sine = sin(pi * (y - 2.0));
    }
    return copysign(1.0, x) * sine;
}

/* Of x > 0; for large x as a function of 1 / x, which does not overflow. */
static double lanczos_sum(double x)
{
    double above = 0.0, below = 0.0;

    if (x < 5.0) {
        for (int i = TERMS - 1; i >= 0; i--) {
            above = above * x + numerator[i];
            below = below * x + denominator[i];
        }
    } else {
        for (int i = 0; i < TERMS; i++) {
            above = above / x + numerator[i];
            below = below / x + denominator[i];
        }
    }
    return above / below;
}

/* Of a finite x that is no small whole number, and neither tiny nor huge. */
static double lanczos_gamma(double x)
{
    const double size = fabs(x);
    const double y = size + lanczos_g_less_half;
    /* How far y is from the exact sum: powers magnify that. */
    const double error = size > lanczos_g_less_half ? (y - size) - lanczos_g_less_half
                                                    : (y - lanczos_g_less_half) - size;
    const double correction = error * lanczos_g / y;
    double gamma;

    if (x < 0.0) {
        gamma = -pi / sin_of_pi(size) / size * exp(y) / lanczos_sum(size);
        gamma -= correction * gamma;
    } else {
        gamma = lanczos_sum(size) / exp(y);
        gamma += correction * gamma;
    }
    /* In two steps where one would overflow. */
    const int steps = size < 140.0 ? 1 : 2;
    const double power = steps == 1 ? pow(y, size - 0.5) : pow(y, size / 2.0 - 0.25);
    for (int i = 0; i < steps; i++)
        gamma = x < 0.0 ? gamma / power : gamma * power;
    return gamma;
}

int32_t ss_math_gamma(double x, double *result)
{
    double gamma;

    if (isnan(x) || x == INFINITY)
        gamma = x;
    else if (x == 0.0 || (x < 0.0 && x == floor(x))) /* -inf as well */
        return SS_VALUE_ERROR;
    else if (x == floor(x) && x <= (double)(sizeof factorials / sizeof *factorials))
        gamma = factorials[(int)x - 1];
    else if (fabs(x) < 1e-20)
        gamma = 1.0 / x;
    else if (fabs(x) > 200.0)
        gamma = x < 0.0 ? 0.0 / sin_of_pi(x) : INFINITY;
    else
        gamma = lanczos_gamma(x);
    if (isinf(gamma) && !isinf(x))
        return SS_OVERFLOW_ERROR;
    *result = gamma;
    return 0;
}

int32_t ss_math_lgamma(double x, double *result)
{
    const double size = fabs(x);
    double logarithm;

    if (!isfinite(x)) {
        logarithm = isnan(x) ? x : INFINITY;
    } else if (x == floor(x) && x <= 2.0) {
        if (x <= 0.0)
            return SS_VALUE_ERROR;
        logarithm = 0.0;
    } else if (size < 1e-20) {
        logarithm = -log(size);
    } else {
        logarithm = log(lanczos_sum(size)) - lanczos_g;
        logarithm += (size - 0.5) * (log(size + lanczos_g - 0.5) - 1.0);
        if (x < 0.0)
            logarithm = log_pi - log(fabs(sin_of_pi(size))) - log(size) - logarithm;
    }
    if (isinf(logarithm) && !isinf(x))
        return SS_OVERFLOW_ERROR;
    *result = logarithm;
    return 0;
}

/* -- single floats -- */

int32_t ss_math_remainder(double x, double y, double *result)
{
    const double divisor = fabs(y);

    if (isnan(x) || isnan(y)) {
        *result = isnan(x) ? x : y;
    } else if (isinf(x) || y == 0.0) {
        return SS_VALUE_ERROR;
    } else if (isinf(y)) {
        *result = x;
    } else {
        /* Each step is exact. That of the libm has lost the sign of a zero. */
        const double below = fmod(fabs(x), divisor), above = divisor - below;
        double rest = below < above ? below : -above;
        if (below == above) /* to the even multiple */
            rest = below - 2.0 * fmod(0.5 * (fabs(x) - below), divisor);
        *result = copysign(1.0, x) * rest;
    }
    return 0;
}

double ss_math_nextafter(double x, double y)
{
    return nextafter(x, y);
}

double ss_math_ulp(double x)
{
    if (isnan(x) || isinf(x))
        return fabs(x);
    x = fabs(x);
    const double above = nextafter(x, INFINITY);
    return isinf(above) ? x - nextafter(x, 0.0) : above - x;
}

double ss_math_frexp(double x, int64_t *exponent)
{
    int power = 0;
    const double mantissa = isfinite(x) && x != 0.0 ? frexp(x, &power) : x;
    *exponent = power;
    return mantissa;
}

double ss_math_modf(double x, double *whole)
{
    if (isinf(x)) {
        *whole = x;
        return copysign(0.0, x);
    }
    return modf(x, whole);
}

int32_t ss_math_isclose(double x, double y, double relative, double absolute)
{
    if (x == y)
        return 1;
    if (isinf(x) || isinf(y))
        return 0;
    const double apart = fabs(y - x);
    return apart <= fabs(relative * y) || apart <= fabs(relative * x) || apart <= absolute;
}

/* -- hypot and dist -- */

struct norm {
    double sum;      /* of the squares, and of the 1.0 that it starts from */
    double error[3]; /* what was lost on the way, by what lost it */
};

static void norm_add(struct norm *norm, double term, int kind)
{
    const double before = norm->sum;

    norm->sum += term;
    norm->error[kind] += (before - norm->sum) + term;
}

/* x as the sum of two doubles whose products are exact (Dekker 1971). */
static double upper_half(double x)
{
    const double scaled = x * 134217729.0;
    return scaled - (scaled - x);
}

/* CPython 3.11. The doubles are finite and not negative, `most` is the largest. */
static double norm_by_halves(const double *values, uint64_t count, double most)
{
    struct norm norm = {1.0, {0.0, 0.0, 0.0}};
    int exponent;

    frexp(most, &exponent);
    if (exponent < -1023) { /* its inverse would overflow */
        for (uint64_t i = 0; i < count; i++) {
            const double part = values[i] / most;
            norm_add(&norm, part * part, 0);
        }
        return most * sqrt(norm.sum - 1.0 + norm.error[0]);
    }
    const double scale = ldexp(1.0, -exponent);
    for (uint64_t i = 0; i < count; i++) {
        const double x = values[i] * scale;
        const double high = upper_half(x), low = x - high;
        norm_add(&norm, high * high, 0);
        norm_add(&norm, 2.0 * high * low, 1);
        norm.error[2] += low * low;
    }
    const double root = sqrt(norm.sum - 1.0 + (norm.error[0] + norm.error[1] + norm.error[2]));
    const double high = upper_half(root), low = root - high;
    norm_add(&norm, -high * high, 0);
    norm_add(&norm, -2.0 * high * low, 1);
    norm_add(&norm, -low * low, 2);
    const double rest = norm.sum - 1.0 + (norm.error[0] + norm.error[1] + norm.error[2]);
    return (root + rest / (2.0 * root)) / scale;
}

static void norm_add_product(struct norm *norm, double x, double y)
{
    const double product = x * y;

    norm->error[1] += fma(x, y, -product);
    norm_add(norm, product, 0);
}

/* CPython 3.12 and later. */
static double norm_by_fma(const double *values, uint64_t count, double most)
{
    struct norm norm = {1.0, {0.0, 0.0, 0.0}};
    int exponent;

    frexp(most, &exponent);
    /* Subnormal numbers are made normal first, which is exact. */
    const double unit = exponent < -1023 ? DBL_MIN : 1.0;
    if (exponent < -1023)
        frexp(most / unit, &exponent);
    const double scale = ldexp(1.0, -exponent);
    for (uint64_t i = 0; i < count; i++) {
        const double x = values[i] / unit * scale;
        norm_add_product(&norm, x, x);
    }
    double root = sqrt(norm.sum - 1.0 + (norm.error[1] + norm.error[0]));
    norm_add_product(&norm, -root, root);
    const double rest = norm.sum - 1.0 + (norm.error[1] + norm.error[0]);
    root += rest / (2.0 * root);
    return unit * (root / scale);
}

double ss_math_hypot(double *values, uint64_t count, int32_t by_fma)
{
    double most = 0.0;
    int has_nan = 0;

    for (uint64_t i = 0; i < count; i++) {
        values[i] = fabs(values[i]);
        has_nan |= isnan(values[i]);
        if (values[i] > most)
            most = values[i];
    }
    if (isinf(most))
        return most;
    if (has_nan)
        return NAN;
    if (most == 0.0 || count <= 1)
        return most;
    return by_fma ? norm_by_fma(values, count, most) : norm_by_halves(values, count, most);
}

/* -- fsum -- */

/* Doubles of 53 bits that do not overlap, from 2**-1074 to 2**1023: no more fit. */
enum { MOST_PARTIALS = 2098 / 53 + 2 };

struct exact_sum {
    double partials[MOST_PARTIALS]; /* the smallest first */
    uint64_t count;
    double special, infinite;
};

static int32_t exact_add(struct exact_sum *sum, double term)
{
    const double given = term;
    uint64_t kept = 0;

    for (uint64_t i = 0; i < sum->count; i++) {
        double other = sum->partials[i];
        if (fabs(term) < fabs(other)) {
            const double swapped = term;
            term = other;
            other = swapped;
        }
        /* Not optimised away: each step is rounded. */
        const volatile double high = term + other;
        const volatile double moved = high - term;
        const double low = other - moved;
        if (low != 0.0)
            sum->partials[kept++] = low;
        term = high;
    }
    sum->count = kept;
    if (term == 0.0)
        return 0;
    if (isfinite(term)) {
        assert(sum->count < MOST_PARTIALS);
        sum->partials[sum->count++] = term;
        return 0;
    }
    if (isfinite(given))
        return SS_OVERFLOW_ERROR; /* on the way, even where the sum would not be */
    if (isinf(given))
        sum->infinite += given;
    sum->special += given;
    sum->count = 0;
    return 0;
}

static double exact_total(const struct exact_sum *sum)
{
    uint64_t left = sum->count;

    if (left == 0)
        return 0.0;
    double high = sum->partials[--left], low = 0.0;
    while (left > 0) {
        const double before = high, term = sum->partials[--left];
        const volatile double total = before + term;
        const volatile double moved = total - before;
        low = term - moved;
        high = total;
        if (low != 0.0)
            break;
    }
    /* Half way between two doubles: what follows says which of them is the nearer. */
    if (left > 0 && ((low < 0.0 && sum->partials[left - 1] < 0.0) ||
                     (low > 0.0 && sum->partials[left - 1] > 0.0))) {
        const double twice = low * 2.0;
        const volatile double next = high + twice;
        const volatile double moved = next - high;
        if (twice == moved)
            high = next;
    }
    return high;
}

_Static_assert(sizeof(struct exact_sum) == SS_EXACT_SUM_WORDS * sizeof(double), "words of a sum");

int32_t ss_math_fsum_add(double *words, double term)
{
    return exact_add((struct exact_sum *)(void *)words, term);
}

int32_t ss_math_fsum_total(const double *words, double *result)
{
    const struct exact_sum *sum = (const struct exact_sum *)(const void *)words;

    if (sum->special != 0.0) {
        if (isnan(sum->infinite))
            return SS_VALUE_ERROR; /* inf and -inf */
        *result = sum->special;
        return 0;
    }
    *result = exact_total(sum);
    return 0;
}

/* -- integers -- */

uint64_t ss_math_isqrt(uint64_t n)
{
    uint64_t root = (uint64_t)sqrt((double)n);

    /* The double is near; by no more than one step from here. */
    while (root > UINT32_MAX || root * root > n)
        root--;
    while (root < UINT32_MAX && (root + 1) * (root + 1) <= n)
        root++;
    return root;
}

uint64_t ss_math_gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int32_t ss_math_lcm(uint64_t a, uint64_t b, uint64_t limit, uint64_t *result)
{
    uint64_t multiple = 0;

    if (a != 0 && b != 0) {
        const uint128_t exact = (uint128_t)(a / ss_math_gcd(a, b)) * b;
        if (exact > limit)
            return SS_OVERFLOW_ERROR;
        multiple = (uint64_t)exact;
    }
    *result = multiple;
    return 0;
}

int32_t ss_math_perm(uint64_t n, uint64_t k, uint64_t limit, uint64_t *result)
{
    uint64_t ways = 1;

    if (k > n)
        ways = 0;
    for (uint64_t i = 0; i < k && ways != 0; i++) {
        /* The last factor is 1 or more, so it grows: 21 steps at most. */
        const uint128_t exact = (uint128_t)ways * (n - i);
        if (exact > limit)
            return SS_OVERFLOW_ERROR;
        ways = (uint64_t)exact;
    }
    *result = ways;
    return 0;
}

int32_t ss_math_comb(uint64_t n, uint64_t k, uint64_t limit, uint64_t *result)
{
    if (k > n) {
        *result = 0;
        return 0;
    }
    if (k > n - k)
        k = n - k;
    uint64_t ways = 1;
    for (uint64_t i = 0; i < k; i++) {
        /* n choose i + 1, which is larger up to the middle: it is at least twice as large in two
         * steps, so the loop is short. */
        const uint128_t exact = (uint128_t)ways * (n - i) / (i + 1);
        if (exact > limit)
            return SS_OVERFLOW_ERROR;
        ways = (uint64_t)exact;
    }
    *result = ways;
    return 0;
}
