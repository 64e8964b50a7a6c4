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
#ifndef MYRI_MACHINE_H
#define MYRI_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* name, unit, least, most */
#define MYRI_MACHINE_VALUES(V)           \
    V(link_rate, "MB/s", 1, 1e5)         \
    V(head_latency, "us", 0.1, 100)      \
    V(slack, "bytes", 0, 65536)          \
    V(ni_clock, "MHz", 1, 1e4)           \
    V(ni_instruction, "cycles", 1, 1000) \
    V(ni_time, "factor", 0.1, 10)        \
    V(sram, "KB", 16, 1024)              \
    V(sram_accesses, "per-cycle", 0, 8)  \
    V(send_start, "cycles", 0, 1000)     \
    V(receive_start, "cycles", 0, 1000)  \
    V(dma_start, "cycles", 0, 1000)      \
    V(dma_setup, "us", 0, 100)           \
    V(dma_to_host, "part", 0, 1)         \
    V(dma_rate, "MB/s", 1, 1e5)          \
    V(bus_burst, "bytes", 4, 65536)      \
    V(store, "us", 0.001, 100)           \
    V(store_bytes, "bytes", 4, 64)       \
    V(combined_rate, "MB/s", 0, 1e5)     \
    V(load, "us", 0.001, 100)            \
    V(look_pause, "us", 0, 1000)         \
    V(copy_rate, "MB/s", 0.1, 1e5)       \
    V(poll, "ns", 1, 1e5)                \
    V(miss, "ns", 0, 1e5)                \
    V(host_operation, "ns", 0.1, 1e4)    \
    V(windows, "frames", 0, 32)          \
    V(window_trap, "us", 0, 100)         \
    V(interrupt, "us", 0, 1e4)           \
    V(system_call, "us", 0, 1e4)         \
    V(pin_page, "us", 0, 1e4)            \
    V(page, "bytes", 1024, 16384)        \
    V(quantum, "us", 10, 1e6)            \
    V(process_switch, "us", 0, 1e4)      \
    V(ethernet, "us", 0, 1e5)            \
    V(datagram, "us", 0, 1e5)            \
    V(thread_switch, "us", 0, 1e4)

#define MYRI_MACHINE_ENUM(name, unit, least, most) MYRI_M_##name,
enum myri_machine_value { MYRI_MACHINE_VALUES(MYRI_MACHINE_ENUM) MYRI_M_COUNT };

enum { MYRI_MACHINE_NAME = 16, MYRI_MACHINE_TEXT = 200, MYRI_MACHINE_FILE = 64 << 10 };

struct myri_machine {
    char name[MYRI_MACHINE_NAME], about[MYRI_MACHINE_TEXT];
    double v[MYRI_M_COUNT];
    char class_of[MYRI_M_COUNT]; /* g d f or a(ssumed) */
    char source[MYRI_M_COUNT][MYRI_MACHINE_TEXT];
};

/* n bytes of text. 0, or RNL_ERR_ARG with the line that is wrong. */
int myri_machine_parse(const char *text, size_t n, struct myri_machine *out);
/* "name=number"; the class becomes default, the source "set by hand". */
int myri_machine_set(struct myri_machine *, const char *assignment);
const char *myri_machine_name_of(enum myri_machine_value);
const char *myri_machine_unit_of(enum myri_machine_value);
int myri_machine_value_of(const char *name); /* or -1 */
const char *myri_machine_class_name(char class_of);

/* Whole picoseconds, the unit of all time in hw/. */
uint64_t myri_machine_us(const struct myri_machine *, enum myri_machine_value);
uint64_t myri_machine_ns(const struct myri_machine *, enum myri_machine_value);
uint64_t myri_machine_cycles(const struct myri_machine *, enum myri_machine_value);
uint64_t myri_machine_bytes(const struct myri_machine *, enum myri_machine_value rate, uint64_t n);
/* The other way round: whole words that are through, of so much time as all take and as is left. */
uint32_t myri_machine_done(const struct myri_machine *, enum myri_machine_value rate, uint64_t all, uint64_t left);

#endif
