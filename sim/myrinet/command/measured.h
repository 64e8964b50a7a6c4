/* SPDX-License-Identifier: BSD-3-Clause
 *
 * measured.h - what `runnel paper matrix` measures of a system. NAN: it has no such thing, or a run ends in a fault. */
#ifndef MYRI_MEASURED_H
#define MYRI_MEASURED_H

#include "sim/myrinet/command/command.h"

struct myri_cmd_measured {
    /* These are of messages of 4 bytes; tuned: one way, second firmware. LogP's latency is the one-way time less
     * both overheads. */
    double one_way_us, tuned_us, send_us, take_us, gap_us;
    /* Per message of 4 bytes, of two programs that poll: instructions of turns that store something, on either card. */
    double sender_instructions, receiver_instructions;
    /* Per question of 4 bytes to a program that may be interrupted: it looks each 20 us, or never. */
    double interrupts_looking, interrupts_never;
    double rate_1k, rate_long;                 /* MB/s of ping-pongs */
    double long_bytes;                         /* of the longest message, 64 KB at most */
    double copies, bus_bytes;                  /* per byte of 1 KB, at both hosts together */
    double firmware_bytes, sram_bytes, pinned; /* sram: with the firmware; pinned: pages of a host, of two hosts */
    double to_8_us, to_16_us;                  /* a message of 4 bytes, by the system's own way */
    double goodput, wire;                      /* under overload: MB/s, and bytes on the wire for each byte of it */
};

/* The cost of one message, which is what twice as many cost more; of both hosts together, where no host is named. */
struct myri_cmd_counts {
    double take_us; /* of the receive */
    double sender_instructions, receiver_instructions, bus_bytes, copied, interrupts;
    uint32_t firmware_bytes, sram_bytes, pinned; /* as above */
};
/* Counts what a message of an experiment costs, which has to measure take-cost. 0, or an error. */
int myri_cmd_count(const struct myri_experiment *, struct myri_cmd_counts *out);

/* 0, or the exit status, said. */
int myri_cmd_measured(const struct myri_cmd_options *, const struct myri_machine *, const struct myri_system *,
                      struct myri_cmd_measured *out);

#endif
