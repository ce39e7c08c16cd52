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

#endif
