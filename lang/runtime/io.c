/* SPDX-License-Identifier: BSD-3-Clause
 *
 * io.c - Read and Write, and the standard unit InOut. */
#include "rts.h"
#include "units.h"
#include <stdio.h>
#include <stdlib.h>

static FILE *input, *output;

static FILE *in(void)
{
    return input ? input : stdin;
}

static FILE *out(void)
{
    return output ? output : stdout;
}

void orc_write_int(int64_t v)
{
    fprintf(out(), "%lld", (long long)v);
}

void orc_write_real(double v)
{
    fprintf(out(), "%g", v);
}

void orc_write_char(uint8_t c)
{
    fputc(c, out());
}

void orc_write_string(const struct orc_array *s)
{
    if (s->n)
        fwrite(s->data, 1, (size_t)s->n, out());
}

void orc_write_line(void)
{
    fputc('\n', out());
}

static int next_char(void)
{
    return fgetc(in());
}

static void push_back(int c)
{
    if (c != EOF)
        ungetc(c, in());
}

/* A word of at most n - 1 characters that are not blanks. */
static void read_word(char *s, int n, const char *what, orc_place at)
{
    int c, i = 0;
    while ((c = next_char()) == ' ' || (c >= '\t' && c <= '\r')) {
    }
    for (; c != EOF && c > ' ' && i < n - 1; c = next_char())
        s[i++] = (char)c;
    push_back(c);
    s[i] = 0;
    if (!i)
        orc_fail(at, "%s was expected in the input, which is at its end", what);
}

int64_t orc_read_int(orc_place at)
{
    char s[64], *end;
    read_word(s, sizeof s, "an integer", at);
    long long v = strtoll(s, &end, 10);
    if (*end)
        orc_fail(at, "an integer was expected in the input, not %s", s);
    return v;
}

double orc_read_real(orc_place at)
{
    char s[64], *end;
    read_word(s, sizeof s, "a real", at);
    double v = strtod(s, &end);
    if (*end)
        orc_fail(at, "a real was expected in the input, not %s", s);
    return v;
}

uint8_t orc_read_char(orc_place at)
{
    int c = next_char();
    if (c == EOF)
        orc_fail(at, "a character was expected in the input, which is at its end");
    return (uint8_t)c;
}

/* The rest of the line. */
void orc_read_string(struct orc_array *s, orc_place at)
{
    struct orc_buffer b = {0};
    int c;
    (void)at;
    while ((c = next_char()) != EOF && c != '\n') {
        char one = (char)c;
        orc_put_bytes(&b, &one, 1);
    }
    orc_string(s, (const char *)b.p, (int64_t)b.n);
    free(b.p);
}

/* ---- InOut ---- */

void f_InOut__WriteChar(uint8_t c)
{
    orc_write_char(c);
}
void f_InOut__WriteInt(int32_t v)
{
    orc_write_int(v);
}
void f_InOut__WriteLongInt(int64_t v)
{
    orc_write_int(v);
}
void f_InOut__WriteShortInt(int16_t v)
{
    orc_write_int(v);
}
void f_InOut__WriteReal(double v)
{
    orc_write_real(v);
}
void f_InOut__WriteLongReal(double v)
{
    orc_write_real(v);
}
void f_InOut__WriteString(const struct orc_array *s)
{
    orc_write_string(s);
}
void f_InOut__WriteLn(void)
{
    orc_write_line();
}
void f_InOut__ReadChar(uint8_t *c)
{
    *c = orc_read_char(0);
}
void f_InOut__ReadInt(int32_t *v)
{
    *v = (int32_t)orc_read_int(0);
}
void f_InOut__ReadLongInt(int64_t *v)
{
    *v = orc_read_int(0);
}
void f_InOut__ReadShortInt(int16_t *v)
{
    *v = (int16_t)orc_read_int(0);
}
void f_InOut__ReadReal(double *v)
{
    *v = orc_read_real(0);
}
void f_InOut__ReadLongReal(double *v)
{
    *v = orc_read_real(0);
}
void f_InOut__ReadShortReal(float *v)
{
    *v = (float)orc_read_real(0);
}
void f_InOut__ReadString(struct orc_array *s)
{
    orc_read_string(s, 0);
}
void f_InOut__Ahead(uint8_t *c)
{
    int k = next_char();
    push_back(k);
    *c = k == EOF ? 0 : (uint8_t)k;
}
uint8_t f_InOut__Eof(void)
{
    int c = next_char();
    push_back(c);
    return c == EOF;
}
uint8_t f_InOut__Eoln(void)
{
    int c = next_char();
    push_back(c);
    return c == EOF || c == '\n';
}

static char *name_of(const struct orc_array *s)
{
    char *name = orc_alloc((size_t)s->n + 1);
    if (s->n)
        memcpy(name, s->data, (size_t)s->n);
    return name;
}

static uint8_t open_as(FILE **f, const struct orc_array *s, const char *mode)
{
    char *name = name_of(s);
    if (*f)
        fclose(*f);
    *f = fopen(name, mode);
    free(name);
    return *f != NULL;
}

uint8_t f_InOut__OpenInputFile(const struct orc_array *name)
{
    return open_as(&input, name, "r");
}
uint8_t f_InOut__OpenOutputFile(const struct orc_array *name)
{
    return open_as(&output, name, "w");
}
uint8_t f_InOut__AppendOutputFile(const struct orc_array *name)
{
    return open_as(&output, name, "a");
}
void f_InOut__CloseInput(void)
{
    if (input)
        fclose(input);
    input = NULL;
}
void f_InOut__CloseOutput(void)
{
    if (output)
        fclose(output);
    output = NULL;
}
void f_InOut__Flush(void)
{
    fflush(out());
}
