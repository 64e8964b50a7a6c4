/* SPDX-License-Identifier: BSD-3-Clause
 *
 * units.h - functions of the standard units that are written in C. Their names and types follow from the .spf files in
 * lang/units: function F of unit U is f_U__F. */
#ifndef ORC_UNITS_H
#define ORC_UNITS_H

#include "orca_rts.h"

void f_InOut__WriteChar(uint8_t c);
void f_InOut__WriteInt(int32_t v);
void f_InOut__WriteLongInt(int64_t v);
void f_InOut__WriteShortInt(int16_t v);
void f_InOut__WriteReal(double v);
void f_InOut__WriteLongReal(double v);
void f_InOut__WriteString(const struct orc_array *s);
void f_InOut__WriteLn(void);
void f_InOut__ReadChar(uint8_t *c);
void f_InOut__ReadInt(int32_t *v);
void f_InOut__ReadLongInt(int64_t *v);
void f_InOut__ReadShortInt(int16_t *v);
void f_InOut__ReadReal(double *v);
void f_InOut__ReadLongReal(double *v);
void f_InOut__ReadShortReal(float *v);
void f_InOut__ReadString(struct orc_array *s);
void f_InOut__Ahead(uint8_t *c);
uint8_t f_InOut__Eof(void);
uint8_t f_InOut__Eoln(void);
uint8_t f_InOut__OpenInputFile(const struct orc_array *name);
uint8_t f_InOut__OpenOutputFile(const struct orc_array *name);
uint8_t f_InOut__AppendOutputFile(const struct orc_array *name);
void f_InOut__CloseInput(void);
void f_InOut__CloseOutput(void);
void f_InOut__Flush(void);

int32_t f_Time__GetTime(void);
int32_t f_Time__SysMilli(void);
double f_Time__SysMicro(void);
void f_Time__Sleep(int32_t sec, int32_t nsec);
void f_Time__PrintTime(const struct orc_array *name, int32_t ms);

int32_t f_args__Argc(void);
void f_args__Argv(int32_t i, struct orc_array *r);
void f_args__Getenv(const struct orc_array *name, struct orc_array *r);

int32_t f_conversions__StringToInt(const struct orc_array *s, int32_t *eaten);
double f_conversions__StringToReal(const struct orc_array *s, int32_t *eaten);
void f_conversions__IntToString(int32_t v, struct orc_array *r);
void f_conversions__RealToString(double v, int32_t digits, struct orc_array *r);

double f_Math__sin(double x);
double f_Math__cos(double x);
double f_Math__tan(double x);
double f_Math__asin(double x);
double f_Math__acos(double x);
double f_Math__atan(double x);
double f_Math__atan2(double y, double x);
double f_Math__sinh(double x);
double f_Math__cosh(double x);
double f_Math__tanh(double x);
double f_Math__exp(double x);
double f_Math__log(double x);
double f_Math__log10(double x);
double f_Math__pow(double x, double y);
double f_Math__sqrt(double x);
double f_Math__ceil(double x);
double f_Math__floor(double x);
double f_Math__fabs(double x);
double f_Math__ldexp(double x, int32_t e);
double f_Math__frexp(double x, int32_t *e);
double f_Math__modf(double x, double *whole);
double f_Math__fmod(double x, double y);
double f_Math__IntToLongReal(int32_t i);
int32_t f_Math__LongRealToInt(double x);
double f_Math__LongRealMin(void);
double f_Math__LongRealMax(void);

void f_Finish__Finish(void);

#endif
