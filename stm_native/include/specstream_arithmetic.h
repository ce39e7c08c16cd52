#ifndef SPECSTREAM_ARITHMETIC_H
#define SPECSTREAM_ARITHMETIC_H

#include <stdint.h>

/*
 * Arithmetic of compiled operators that must not be left to LLVM.
 *
 * Two reasons put a function here. Either its result depends on the libm (LLVM folds calls of `exp`
 * or `pow` on constants with the libm that it was itself built with, and rewrites `pow(x, 0.5)`), or
 * it needs 128-bit integers. The names are unknown to LLVM, so it can do neither.
 *
 * A function that returns `int32_t` and takes a result pointer returns 0 and writes the result, or
 * returns what Python raises; then the result is left alone.
 */
enum ss_failure {
    SS_VALUE_ERROR = 1,
    SS_OVERFLOW_ERROR = 2,
    SS_ZERO_DIVISION_ERROR = 3
};

/* math.f(x): Python raises where x is finite and f(x) is not, or f(x) alone is a NaN. Caller checks. */
double ss_math_exp(double x);
double ss_math_exp2(double x);
double ss_math_expm1(double x);
double ss_math_log(double x);
double ss_math_log2(double x);
double ss_math_log10(double x);
double ss_math_log1p(double x);
double ss_math_sin(double x);
double ss_math_cos(double x);
double ss_math_tan(double x);
double ss_math_asin(double x);
double ss_math_acos(double x);
double ss_math_atan(double x);
double ss_math_sinh(double x);
double ss_math_cosh(double x);
double ss_math_tanh(double x);
double ss_math_asinh(double x);
double ss_math_acosh(double x);
double ss_math_atanh(double x);
double ss_math_erf(double x);
double ss_math_erfc(double x);
double ss_math_cbrt(double x);
double ss_math_atan2(double y, double x);

int32_t ss_math_pow(double x, double y, double *result);
int32_t ss_math_fmod(double x, double y, double *result);
int32_t ss_math_ldexp(double x, int64_t exponent, double *result);

/* x ** y. A complex result is a ValueError: operators have none. */
int32_t ss_float_power(double x, double y, double *result);

/* x % y and x // y, floor semantics and signed zeros as in Python. The caller has checked y != 0. */
double ss_float_mod(double x, double y);
double ss_float_floordiv(double x, double y);

/* base ** exponent modulo 2**64; correct for two's complement bases as well. */
uint64_t ss_int_power(uint64_t base, uint64_t exponent);

/* The quotient of two integers, rounded once, half to even. The caller has checked divisor != 0. */
double ss_int_true_divide_i64(int64_t dividend, int64_t divisor);
double ss_int_true_divide_u64(uint64_t dividend, uint64_t divisor);

/* math.f as CPython computes it (math_functions.c). */
int32_t ss_math_gamma(double x, double *result);
int32_t ss_math_lgamma(double x, double *result);
int32_t ss_math_remainder(double x, double y, double *result);
double ss_math_nextafter(double x, double y);
double ss_math_ulp(double x);
double ss_math_frexp(double x, int64_t *exponent);
double ss_math_modf(double x, double *whole);
/* The tolerances have been checked. */
int32_t ss_math_isclose(double x, double y, double relative, double absolute);
/* The values become their magnitudes. `by_fma`: as from CPython 3.12 on. */
double ss_math_hypot(double *values, uint64_t count, int32_t by_fma);
/* math.fsum, in so many words of the caller's, which are zero at first. */
enum { SS_EXACT_SUM_WORDS = 44 };
int32_t ss_math_fsum_add(double *words, double term);
int32_t ss_math_fsum_total(const double *words, double *result);

/* Of magnitudes; a result beyond `limit` is an OverflowError. */
uint64_t ss_math_isqrt(uint64_t n);
uint64_t ss_math_gcd(uint64_t a, uint64_t b);
int32_t ss_math_lcm(uint64_t a, uint64_t b, uint64_t limit, uint64_t *result);
int32_t ss_math_perm(uint64_t n, uint64_t k, uint64_t limit, uint64_t *result);
int32_t ss_math_comb(uint64_t n, uint64_t k, uint64_t limit, uint64_t *result);

/* round(x, places); of an integer's magnitude to a multiple of 10**places, places >= 0. */
int32_t ss_float_round(double x, int64_t places, double *result);
int32_t ss_int_round(uint64_t x, int64_t places, uint64_t limit, uint64_t *result);
/* base ** exponent modulo a magnitude; `negative`: to the power of -exponent. */
int32_t ss_int_power_modulo(uint64_t base, uint64_t exponent, uint64_t modulus, int32_t negative,
                            uint64_t *result);

#endif
