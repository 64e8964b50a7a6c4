/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout.h - what a card of Intel's 8255x family and its driver share: registers, and blocks in memory that the card
 * reads and writes by itself. The numbers are those of Intel's "8255x Open Source Software Developer Manual".
 *
 * The memory is 2 MiB below 4 GiB of the card's addresses, since it has 32 bits of them:
 *
 *     0        what the card's self test writes
 *     0x400    one action at a time: configuration, address
 *     0x800    its label, for whoever is passed the memory (grant.h)
 *     0x10000  RNL_I8255X_RX receive blocks of RNL_I8255X_SLOT bytes, a circle
 *     0x40000  RNL_I8255X_TX transmit blocks, a circle
 *
 *     bytes    0        2         4      8        12      14          15   16
 *              +--------+---------+------+--------+-------+-----------+----+-------
 *     transmit | status | command | link | ~0     | bytes | threshold | 0  | frame     status by the card, else by us
 *              +--------+---------+------+--------+-------+-----------+----+-------
 *     receive  | status | command | link | unused | count | size           | frame     status, count, frame by the card
 *              +--------+---------+------+--------+-------+----------------+-------
 *
 * A block is the card's until it has set DONE in its status, then ours. The command unit stops behind a transmit block
 * with SUSPEND, which is the newest; the receive unit behind one with END, which is the last it may fill. */
#ifndef RNL_NET_SOCKET_I8255X_LAYOUT_H
#define RNL_NET_SOCKET_I8255X_LAYOUT_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RNL_I8255X_RX = 64,
    RNL_I8255X_TX = 32,
    RNL_I8255X_SLOT = 2048,
    RNL_I8255X_FRAME = 1514, /* bytes of the longest frame */
    RNL_I8255X_MEMORY = 2 << 20,
    RNL_I8255X_REGISTERS = 4096
};
enum {
    RNL_I8255X_AT_TEST = 0,
    RNL_I8255X_AT_ONCE = 0x400,
    RNL_I8255X_AT_LABEL = 0x800,
    RNL_I8255X_AT_RX = 0x10000,
    RNL_I8255X_AT_TX = 0x40000
};
enum { RNL_I8255X_LABEL = 0x58353538 };
struct rnl_i8255x_label {
    uint32_t magic, wire;
    uint64_t bus, registers_at;
};

enum {                         /* registers, by their offsets */
       RNL_I8255X_STATUS = 0,  /* bits 2 to 5: state of the receive unit */
       RNL_I8255X_ACK = 1,     /* causes of interrupts; a written 1 takes one away */
       RNL_I8255X_COMMAND = 2, /* reads as 0 once the card has taken the last one */
       RNL_I8255X_MASK = 3,    /* 1 = no interrupts; bits 2 to 7 keep one cause each back, and are never all 0 here */
       RNL_I8255X_POINTER = 4, /* of the command */
       RNL_I8255X_PORT = 8,    /* reset, self test */
       RNL_I8255X_EEPROM = 14, /* bit 0 clock, 1 select, 2 to it, 3 from it */
       RNL_I8255X_MDI = 16     /* the registers of the part that knows the cable */
};
enum { /* commands; those of the command unit are in the high half of the byte */
       RNL_I8255X_CU_START = 0x10,
       RNL_I8255X_CU_RESUME = 0x20,
       RNL_I8255X_CU_BASE = 0x60,
       RNL_I8255X_RU_START = 1,
       RNL_I8255X_RU_BASE = 6,
       RNL_I8255X_RU_READY = 4 /* a state, not a command */
};
enum { RNL_I8255X_MASK_ALL = 1, RNL_I8255X_MASK_ARMED = 0xac /* but for a frame, and a receiver that ran out */ };
enum { RNL_I8255X_COMMAND_WORD = 4, RNL_I8255X_NO_INTERRUPT = 0x400 }; /* of the configuration space; a bit of it */
enum { RNL_I8255X_PORT_RESET = 0, RNL_I8255X_PORT_TEST = 1, RNL_I8255X_PORT_SELECTIVE = 2 };
enum { /* a block's command word */
       RNL_I8255X_END = 0x8000,
       RNL_I8255X_SUSPEND = 0x4000,
       RNL_I8255X_DO_NOTHING = 0,
       RNL_I8255X_DO_ADDRESS = 1,
       RNL_I8255X_DO_CONFIGURE = 2,
       RNL_I8255X_DO_TRANSMIT = 4
};
enum { RNL_I8255X_DONE = 0x8000, RNL_I8255X_OK = 0x2000 };

struct rnl_i8255x_tx {
    volatile _Atomic uint16_t status, command;
    uint32_t link, array;
    uint16_t bytes; /* with 0x8000: the whole frame is in this block */
    uint8_t threshold, zero;
    uint8_t frame[RNL_I8255X_SLOT - 16];
};
struct rnl_i8255x_rx {
    volatile _Atomic uint16_t status, command;
    uint32_t link, unused;
    volatile _Atomic uint16_t count; /* the length is its low 14 bits */
    uint16_t size;
    uint8_t frame[RNL_I8255X_SLOT - 16];
};
static_assert(sizeof(struct rnl_i8255x_tx) == RNL_I8255X_SLOT && offsetof(struct rnl_i8255x_tx, frame) == 16 &&
                  offsetof(struct rnl_i8255x_tx, link) == 4 && offsetof(struct rnl_i8255x_tx, bytes) == 12,
              "the card reads it");
static_assert(sizeof(struct rnl_i8255x_rx) == RNL_I8255X_SLOT && offsetof(struct rnl_i8255x_rx, frame) == 16 &&
                  offsetof(struct rnl_i8255x_rx, link) == 4 && offsetof(struct rnl_i8255x_rx, count) == 12,
              "the card writes it");
static_assert(RNL_I8255X_AT_RX + RNL_I8255X_RX * RNL_I8255X_SLOT <= RNL_I8255X_AT_TX &&
                  RNL_I8255X_AT_TX + RNL_I8255X_TX * RNL_I8255X_SLOT <= RNL_I8255X_MEMORY,
              "they do not overlap");

#endif
