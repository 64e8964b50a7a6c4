/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nic.h - the card as firmware sees it, and as the model of the card obeys it: registers, their bits, and accessors.
 * Compiled for LANai the accessors are single instructions; a native build (tests) gives nic_read and nic_write itself.
 *
 * Only what the protocols need of the real register file is here, under names of our own:
 *   host DMA   EAR host address, LAR SRAM address, DIR direction, CTR bytes: writing it starts the transfer
 *   send       SRT route, SMP first byte, SMLT limit: writing it sends [SMP, SMLT) as one packet with its CRC
 *   receive    RMP first byte of room, RML limit: writing it opens the card for one packet; RLEN its length
 *   ISR        status bits; CLK half microseconds; NODE whose card this is
 *   TMR        half microseconds until TIMER is set, once; 0 stops it; writing it clears TIMER
 *   HMARK, SMARK, RMARK  marks: bytes that the host DMA has moved, that have left, that have come of the packet that is
 *              on its way in; whole words, until all are done, and since the engine was last started
 *   HML, SML   limits: an SRAM address, set before CTR or SMLT starts its engine, that it does not go beyond until the
 *              limit is moved; one that lies outside of what is started is a fault; HML is for transfers to the host
 *   HIRQ       interrupts the host with a value, whose bits wait while HIEN, which is all ones at first, lacks them */
#ifndef MYRI_NIC_H
#define MYRI_NIC_H

#include <stdint.h>

enum {
    ISR,
    EAR,
    LAR,
    DIR,
    CTR,
    SRT,
    SMP,
    SMLT,
    RMP,
    RML,
    RLEN,
    CLK,
    HIRQ,
    NODE,
    TMR,
    HIEN,
    HMARK,
    SMARK,
    RMARK,
    HML,
    SML,
    NIC_REGISTERS
};
/* HDONE, SDONE: that engine is idle; CRCERR comes with RECV; TIMER: the timer has run down */
enum { HDONE = 1, SDONE = 2, RECV = 4, CRCERR = 8, TIMER = 16 };
enum { FROM_HOST = 0, TO_HOST = 1 };
#define ROUTE_VALID 0x80000000u /* a route: this and the number of the node */

#ifdef __lanai__
#define NIC_FILE ((volatile uint32_t *)0xffffff00u)
static inline uint32_t nic_read(unsigned r)
{
    return NIC_FILE[r];
}
static inline void nic_write(unsigned r, uint32_t v)
{
    NIC_FILE[r] = v;
}
/* Where something of the global `card` lies in SRAM. */
#define SRAM_AT(p) ((uint32_t)(p))
#else
uint32_t nic_read(unsigned r);
void nic_write(unsigned r, uint32_t v);
#define SRAM_AT(p) ((uint32_t)((const volatile char *)(p) - (const volatile char *)&card))
#endif
/* The words there: SRAM_AT the other way round. */
#define WORDS_AT(sram) ((volatile uint32_t *)((volatile char *)&card + ((sram)-SRAM_AT(&card))))
#define FIRMWARE       static inline __attribute__((always_inline))
#define RARELY(x)      __builtin_expect(!!(x), 0) /* keeps what happens now and then out of the loop's straight way */

/* For firmware whose state is a local variable of its endless loop, and so mostly in registers: init(STATE *) and
 * step(STATE *) of its own, and the entries that the card, or a native test, calls. */
#ifdef __lanai__
#define LOOP_OF_CARD(type) \
    void fw_main(void);    \
    void fw_main(void)     \
    {                      \
        type loop;         \
        init(&loop);       \
        for (;;)           \
            step(&loop);   \
    }
#else
#define LOOP_OF_CARD(type)   \
    static type native_loop; \
    void fw_init(void);      \
    void fw_init(void)       \
    {                        \
        init(&native_loop);  \
    }                        \
    void fw_step(void);      \
    void fw_step(void)       \
    {                        \
        step(&native_loop);  \
    }
#endif

/* Open the card for one packet into [p, p + bytes). */
FIRMWARE void nic_arm(uint32_t at, uint32_t bytes)
{
    nic_write(RMP, at);
    nic_write(RML, at + bytes);
}
FIRMWARE void nic_send(uint32_t route, uint32_t at, uint32_t bytes)
{
    nic_write(SRT, route);
    nic_write(SMP, at);
    nic_write(SMLT, at + bytes);
}
/* Sends a packet of which no byte from `limit` on leaves before that limit is moved. */
FIRMWARE void nic_send_up_to(uint32_t route, uint32_t at, uint32_t bytes, uint32_t limit)
{
    nic_write(SML, limit);
    nic_send(route, at, bytes);
}
FIRMWARE void nic_dma(uint32_t host, uint32_t at, uint32_t direction, uint32_t bytes)
{
    nic_write(EAR, host);
    nic_write(LAR, at);
    nic_write(DIR, direction);
    nic_write(CTR, bytes);
}

#endif
