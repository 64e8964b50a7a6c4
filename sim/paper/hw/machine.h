/* SPDX-License-Identifier: BSD-3-Clause
 *
 * machine.h - what a machine of the papers is like: a file of values, each with its unit, where it comes from and its
 * class. A class is `given` (a paper says so), `derived` (follows from what papers say), `fitted` (found by `runnel
 * paper fit` on rows of class fit) or `default` (known from elsewhere, or assumed).
 *
 *     # comment
 *     machine H-P
 *     about   Pentium 166 ...
 *     VALUE   NUMBER  UNIT  CLASS  SOURCE ...
 *
 * Every value must be there once, with the unit that it is kept in, and within its bounds. */
#ifndef RNL_PAPER_MACHINE_H
#define RNL_PAPER_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* name, unit, least, most */
#define RNL_MACHINE_VALUES(V)            \
    V(link_rate, "MB/s", 1, 1e5)         \
    V(head_latency, "us", 0.1, 100)      \
    V(slack, "bytes", 0, 65536)          \
    V(ni_clock, "MHz", 1, 1e4)           \
    V(ni_instruction, "cycles", 1, 1000) \
    V(ni_time, "factor", 0.1, 10)        \
    V(sram_accesses, "per-cycle", 0, 8)  \
    V(send_start, "cycles", 0, 1000)     \
    V(receive_start, "cycles", 0, 1000)  \
    V(dma_start, "cycles", 0, 1000)      \
    V(dma_setup, "us", 0, 100)           \
    V(dma_rate, "MB/s", 1, 1e5)          \
    V(bus_burst, "bytes", 4, 65536)      \
    V(store, "us", 0.001, 100)           \
    V(store_bytes, "bytes", 4, 64)       \
    V(combined_rate, "MB/s", 0, 1e5)     \
    V(load, "us", 0.001, 100)            \
    V(copy_rate, "MB/s", 0.1, 1e5)       \
    V(poll, "ns", 1, 1e5)                \
    V(miss, "ns", 0, 1e5)                \
    V(host_operation, "ns", 0.1, 1e4)    \
    V(interrupt, "us", 0, 1e4)           \
    V(system_call, "us", 0, 1e4)         \
    V(pin_page, "us", 0, 1e4)            \
    V(page, "bytes", 1024, 16384)

#define RNL_MACHINE_ENUM(name, unit, least, most) RNL_M_##name,
enum rnl_machine_value { RNL_MACHINE_VALUES(RNL_MACHINE_ENUM) RNL_M_COUNT };

enum { RNL_MACHINE_NAME = 16, RNL_MACHINE_TEXT = 200, RNL_MACHINE_FILE = 64 << 10 };

struct rnl_machine {
    char name[RNL_MACHINE_NAME], about[RNL_MACHINE_TEXT];
    double v[RNL_M_COUNT];
    char class_of[RNL_M_COUNT]; /* g d f or a(ssumed): "default" */
    char source[RNL_M_COUNT][RNL_MACHINE_TEXT];
};

/* n bytes of text. 0, or RNL_ERR_ARG with the line that is wrong. */
int rnl_machine_parse(const char *text, size_t n, struct rnl_machine *out);
/* "name=number"; the class becomes default, the source "set by hand". */
int rnl_machine_set(struct rnl_machine *, const char *assignment);
const char *rnl_machine_name_of(enum rnl_machine_value);
const char *rnl_machine_unit_of(enum rnl_machine_value);
int rnl_machine_value_of(const char *name); /* or -1 */
const char *rnl_machine_class_name(char class_of);

/* Whole picoseconds, the unit of all time in hw/. */
uint64_t rnl_machine_us(const struct rnl_machine *, enum rnl_machine_value);
uint64_t rnl_machine_ns(const struct rnl_machine *, enum rnl_machine_value);
uint64_t rnl_machine_cycles(const struct rnl_machine *, enum rnl_machine_value);
uint64_t rnl_machine_bytes(const struct rnl_machine *, enum rnl_machine_value rate, uint64_t n);

#endif
