/* SPDX-License-Identifier: BSD-3-Clause
 *
 * card.c - starts and stops the card; its EEPROM and its cable. */
#include "net/socket/i8255x/card.h"

#include <errno.h>
#include <linux/vfio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "net/socket/i8255x/card_internal.h"

enum { SETTLE_NS = 20000, ACTION_NS = 200000000, TEST_NS = 500000000 };

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void settle(void)
{
    for (const uint64_t until = now_ns() + SETTLE_NS; now_ns() < until;)
        ;
}

/* A card that was pulled reads as ones on a real bus, as zeros in QEMU; one that is there has the mask that was set. */
bool rnl_i8255x_is_gone(struct rnl_i8255x *c)
{
    const uint32_t word = c->gone ? 0 : get32(c, RNL_I8255X_STATUS);
    c->gone = word == UINT32_MAX || word >> 24 == 0;
    return c->gone;
}

bool rnl_i8255x_command(struct rnl_i8255x *c, uint8_t what)
{
    for (uint32_t tries = 1; get8(c, RNL_I8255X_COMMAND) != 0; tries++)
        if (tries % 1024 == 0 && (tries > 100000 || rnl_i8255x_is_gone(c)))
            return false;
    if (what)
        put8(c, RNL_I8255X_COMMAND, what);
    return true;
}

bool rnl_i8255x_command_at(struct rnl_i8255x *c, uint8_t what, uint32_t at)
{
    if (!rnl_i8255x_command(c, 0)) /* the pointer is the card's until it has taken the command before */
        return false;
    put32(c, RNL_I8255X_POINTER, at);
    return rnl_i8255x_command(c, what);
}

void rnl_i8255x_reset(struct rnl_i8255x *c)
{
    put32(c, RNL_I8255X_PORT, RNL_I8255X_PORT_SELECTIVE);
    settle();
    put32(c, RNL_I8255X_PORT, RNL_I8255X_PORT_RESET);
    settle();
    put8(c, RNL_I8255X_MASK, 1);
}

/* The card writes that it is well, if it can write into the memory at all. */
static int self_test(struct rnl_i8255x *c)
{
    volatile _Atomic uint32_t *test = (void *)(c->memory + RNL_I8255X_AT_TEST);
    const uint64_t until = now_ns() + TEST_NS;
    atomic_store_explicit(&test[0], 0, memory_order_relaxed);
    atomic_store_explicit(&test[1], UINT32_MAX, memory_order_release);
    put32(c, RNL_I8255X_PORT, (uint32_t)(c->bus + RNL_I8255X_AT_TEST) | RNL_I8255X_PORT_TEST);
    while (atomic_load_explicit(&test[0], memory_order_acquire) == 0 && now_ns() < until)
        ;
    if (test[0] == 0 || test[1] != 0)
        return rnl_fail(RNL_ERR_SYSTEM,
                        "the card's self test failed: it does not reach the memory that it was given, or "
                        "is broken");
    rnl_i8255x_reset(c);
    return 0;
}

/* Reads a word by three wires. The EEPROM answers with a zero behind the last bit of the address, which is how the
 * width of an address is found at first. */
static uint16_t eeprom_word(struct rnl_i8255x *c, uint32_t at, uint32_t *width)
{
    const uint32_t bits = *width ? *width : 8, word = 6u << bits | at;
    uint16_t v = 0;
    put16(c, RNL_I8255X_EEPROM, 2);
    for (uint32_t i = bits + 3, sent = 1; i-- > 0; sent++) {
        const uint16_t bit = (uint16_t)(2 | (word >> i & 1) << 2);
        put16(c, RNL_I8255X_EEPROM, bit);
        put16(c, RNL_I8255X_EEPROM, bit | 1);
        put16(c, RNL_I8255X_EEPROM, bit);
        if (*width == 0 && sent > 3 && !(get8(c, RNL_I8255X_EEPROM) & 8)) {
            *width = sent - 3;
            break;
        }
    }
    for (int i = 0; i < 16; i++) {
        put16(c, RNL_I8255X_EEPROM, 3);
        v = (uint16_t)(v << 1 | (get8(c, RNL_I8255X_EEPROM) >> 3 & 1));
        put16(c, RNL_I8255X_EEPROM, 2);
    }
    put16(c, RNL_I8255X_EEPROM, 0);
    return v;
}

static int read_mac(struct rnl_i8255x *c)
{
    uint32_t width = 0;
    uint16_t sum = 0;
    (void)eeprom_word(c, 0, &width);
    for (uint32_t i = 0; width && i < 1u << width; i++) {
        const uint16_t v = eeprom_word(c, i, &width);
        if (i < 3) {
            c->mac[2 * i] = (uint8_t)v;
            c->mac[2 * i + 1] = (uint8_t)(v >> 8);
        }
        sum = (uint16_t)(sum + v);
    }
    if (width == 0 || sum != 0xbaba)
        return rnl_fail(RNL_ERR_SYSTEM, "the card's EEPROM, which has its address, cannot be read");
    return 0;
}

/* Lets the command unit do one thing, and waits for it. */
static bool once(struct rnl_i8255x *c, uint16_t what, const void *data, size_t bytes)
{
    struct rnl_i8255x_tx *b = (void *)(c->memory + RNL_I8255X_AT_ONCE);
    const uint64_t until = now_ns() + ACTION_NS;
    uint16_t status = 0;
    b->link = UINT32_MAX;
    memcpy(&b->array, data, bytes);
    atomic_store_explicit(&b->status, 0, memory_order_relaxed);
    atomic_store_explicit(&b->command, what | RNL_I8255X_END, memory_order_release);
    if (!rnl_i8255x_command_at(c, RNL_I8255X_CU_START, (uint32_t)(c->bus + RNL_I8255X_AT_ONCE)))
        return false;
    while (!(status & RNL_I8255X_DONE) && now_ns() < until)
        status = atomic_load_explicit(&b->status, memory_order_acquire);
    return status & RNL_I8255X_OK;
}

/* 22 bytes: standard blocks; frames with errors are dropped; its own address and broadcasts; padding; 100 Mb/s. */
static const uint8_t configuration[22] = {22, 8,    0, 0,    0,    0, 0x32, 7,    1,    0,    0x2e,
                                          0,  0x60, 0, 0xf2, 0xc8, 0, 0x40, 0xf3, 0x80, 0x3f, 5};

static int configure(struct rnl_i8255x *c)
{
    if (rnl_i8255x_command_at(c, RNL_I8255X_CU_BASE, 0) && rnl_i8255x_command_at(c, RNL_I8255X_RU_BASE, 0) &&
        once(c, RNL_I8255X_DO_CONFIGURE, configuration, sizeof configuration) &&
        once(c, RNL_I8255X_DO_ADDRESS, c->mac, sizeof c->mac) && rnl_i8255x_start(c)) {
        put8(c, RNL_I8255X_ACK, 0xff);
        return 0;
    }
    return rnl_fail(RNL_ERR_SYSTEM, "the card does not do what it is told: it is gone, or broken");
}

int rnl_i8255x_open(struct rnl_i8255x *c, const struct rnl_i8255x_grant *g)
{
    memset(c, 0, sizeof *c);
#if !defined(__x86_64__)
    return rnl_fail(RNL_ERR_UNSUPPORTED,
                    "cards are driven on x86-64 only, where stores to memory and to registers keep "
                    "their order");
#endif
    void *registers =
        mmap(NULL, RNL_I8255X_REGISTERS, PROT_READ | PROT_WRITE, MAP_SHARED, g->registers, (off_t)g->registers_at);
    void *memory = mmap(NULL, RNL_I8255X_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, g->memory, 0);
    int status = 0;
    if (registers == MAP_FAILED || memory == MAP_FAILED)
        status = rnl_fail_errno(RNL_ERR_SYSTEM, errno, "the registers or the memory of a card cannot be mapped");
    c->registers = registers == MAP_FAILED ? NULL : registers;
    c->memory = memory == MAP_FAILED ? NULL : memory;
    c->bus = g->bus;
    c->link_up = true;
    if (status == 0) {
        (void)madvise(memory, RNL_I8255X_MEMORY, MADV_DONTFORK);
        rnl_i8255x_reset(c);
        status = self_test(c);
    }
    if (status == 0)
        status = read_mac(c);
    if (status == 0)
        status = configure(c);
    if (status < 0)
        rnl_i8255x_close(c);
    return status;
}

void rnl_i8255x_close(struct rnl_i8255x *c)
{
    if (c->registers && c->memory && !c->gone)
        rnl_i8255x_reset(c);
    if (c->registers)
        (void)munmap((void *)(uintptr_t)c->registers, RNL_I8255X_REGISTERS);
    if (c->memory)
        (void)munmap(c->memory, RNL_I8255X_MEMORY);
    c->registers = NULL;
    c->memory = NULL;
}

/* A question to the part that knows the cable takes some 50 us, so its answer is read at the next look. Its bit keeps a
 * loss until it is read: a short one shows once. */
static void look_at_link(struct rnl_i8255x *c)
{
    const uint32_t word = c->link_asked ? get32(c, RNL_I8255X_MDI) : 0;
    if (c->link_asked && word & 1u << 28)
        c->link_up = word >> 2 & 1;
    put32(c, RNL_I8255X_MDI, 2u << 26 | 1u << 21 | 1u << 16);
    c->link_asked = true;
}

/* ---- interrupts ---- */

int rnl_i8255x_interrupts(int device)
{
    union {
        struct vfio_irq_set set;
        char room[sizeof(struct vfio_irq_set) + sizeof(int)];
    } irq = {.set = {.argsz = sizeof irq,
                     .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
                     .index = VFIO_PCI_INTX_IRQ_INDEX,
                     .count = 1}};
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return -1;
    irq.set.argsz = (uint32_t)(sizeof irq.set + sizeof fd);
    memcpy(irq.set.data, &fd, sizeof fd);
    if (ioctl(device, VFIO_DEVICE_SET_IRQS, &irq.set) == 0)
        return fd;
    close(fd);
    int32_t rung; /* uio's own descriptor: EIO = its card has no line */
    const bool has_line = read(device, &rung, sizeof rung) == sizeof rung || errno == EAGAIN;
    return has_line ? device : -1;
}

/* uio shuts the card's line when it has rung, where only the configuration space opens it again. */
static void open_line(int line)
{
    uint16_t word;
    if (pread(line, &word, sizeof word, RNL_I8255X_COMMAND_WORD) != sizeof word || !(word & RNL_I8255X_NO_INTERRUPT))
        return;
    word &= (uint16_t)~RNL_I8255X_NO_INTERRUPT;
    (void)!pwrite(line, &word, sizeof word, RNL_I8255X_COMMAND_WORD);
}

/* vfio and uio mask the line when it has rung. What caused it is taken away first, and frames are looked for last. */
bool rnl_i8255x_arm(struct rnl_i8255x *c, int event, int device, int line)
{
    uint64_t counted; /* by an eventfd; uio wants 4 bytes */
    int32_t rung;
    struct vfio_irq_set unmask = {.argsz = sizeof unmask,
                                  .flags = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_UNMASK,
                                  .index = VFIO_PCI_INTX_IRQ_INDEX,
                                  .count = 1};
    uint32_t bytes;
    const bool by_uio = read(event, &counted, sizeof counted) < 0 && errno == EINVAL;
    if (by_uio)
        (void)!read(event, &rung, sizeof rung);
    if (c->gone)
        return false;
    put8(c, RNL_I8255X_ACK, 0xff);
    put8(c, RNL_I8255X_MASK, RNL_I8255X_MASK_ARMED);
    if (by_uio)
        open_line(line);
    else
        (void)ioctl(device, VFIO_DEVICE_SET_IRQS, &unmask);
    return rnl_i8255x_next(c, &bytes) != NULL;
}

void rnl_i8255x_disarm(struct rnl_i8255x *c)
{
    if (!c->gone)
        put8(c, RNL_I8255X_MASK, RNL_I8255X_MASK_ALL);
}

bool rnl_i8255x_tend(struct rnl_i8255x *c)
{
    if (rnl_i8255x_is_gone(c))
        return false;
    rnl_i8255x_restart(c);
    look_at_link(c);
    return true;
}
