/* SPDX-License-Identifier: BSD-3-Clause
 *
 * card_internal.h - registers and commands, for the two files that drive a card. Accesses to registers and the stores
 * to blocks before them are volatile, so the compiler keeps their order, and x86-64 keeps that of stores. */
#ifndef RNL_NET_SOCKET_I8255X_CARD_INTERNAL_H
#define RNL_NET_SOCKET_I8255X_CARD_INTERNAL_H

#include "net/socket/i8255x/card.h"

static inline uint8_t get8(const struct rnl_i8255x *c, uint32_t at)
{
    return c->registers[at];
}

static inline uint32_t get32(const struct rnl_i8255x *c, uint32_t at)
{
    return *(volatile uint32_t *)(void *)(uintptr_t)(c->registers + at);
}

static inline void put8(const struct rnl_i8255x *c, uint32_t at, uint8_t v)
{
    c->registers[at] = v;
}

static inline void put16(const struct rnl_i8255x *c, uint32_t at, uint16_t v)
{
    *(volatile uint16_t *)(void *)(uintptr_t)(c->registers + at) = v;
}

static inline void put32(const struct rnl_i8255x *c, uint32_t at, uint32_t v)
{
    *(volatile uint32_t *)(void *)(uintptr_t)(c->registers + at) = v;
}

bool rnl_i8255x_is_gone(struct rnl_i8255x *c);
/* Waits until the last command was taken, and gives the next, 0 = none. False: the card does not answer. */
bool rnl_i8255x_command(struct rnl_i8255x *c, uint8_t what);
bool rnl_i8255x_command_at(struct rnl_i8255x *c, uint8_t what, uint32_t at);

/* ring.c: makes both circles and starts both units. */
bool rnl_i8255x_start(struct rnl_i8255x *c);
/* Restarts what has stopped. */
void rnl_i8255x_restart(struct rnl_i8255x *c);

#endif
