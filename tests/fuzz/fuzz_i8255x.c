/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz_i8255x.c - the circles of blocks of a card, whose memory is written by the card, by what the wire brings and,
 * where no IOMMU keeps it to its own, by other cards: between any two calls of the driver blocks and registers get any
 * value. Whatever that is, the driver hands out frames of its own circles only, no longer than a block, and tells the
 * card of no other memory. */
#include "input.h"
#include "net/socket/i8255x/card_internal.h"
#include "net/socket/xdp/frame.h"

enum { STEPS = 200, BUS = 0x40000000, HEAD = 64 };

static uint8_t *memory, registers[RNL_I8255X_REGISTERS];

/* ---- the card's part of card.c ---- */

bool rnl_i8255x_is_gone(struct rnl_i8255x *c)
{
    c->gone |= registers[RNL_I8255X_MASK] == 0;
    return c->gone;
}

bool rnl_i8255x_command(struct rnl_i8255x *c, uint8_t what)
{
    (void)what;
    return !c->gone;
}

bool rnl_i8255x_command_at(struct rnl_i8255x *c, uint8_t what, uint32_t at)
{
    const uint32_t in = at - BUS, circle = what == RNL_I8255X_RU_START ? RNL_I8255X_AT_RX : RNL_I8255X_AT_TX;
    const uint32_t blocks = what == RNL_I8255X_RU_START ? RNL_I8255X_RX : RNL_I8255X_TX;
    FUZZ_MUST(in >= circle && in < circle + blocks * RNL_I8255X_SLOT && in % RNL_I8255X_SLOT == 0);
    return !c->gone;
}

/* ---- the circles ---- */

static struct rnl_i8255x_rx *rx_at(uint32_t i)
{
    return (void *)(memory + RNL_I8255X_AT_RX + (size_t)(i % RNL_I8255X_RX) * RNL_I8255X_SLOT);
}

static struct rnl_i8255x_tx *tx_at(uint32_t i)
{
    return (void *)(memory + RNL_I8255X_AT_TX + (size_t)(i % RNL_I8255X_TX) * RNL_I8255X_SLOT);
}

/* Both circles as the driver makes them, once its first block is done. */
static void begin(struct rnl_i8255x *c)
{
    if (!memory)
        memory = calloc(1, RNL_I8255X_MEMORY);
    for (uint32_t i = 0; i < RNL_I8255X_RX; i++)
        memset(rx_at(i), 0, 16 + HEAD);
    for (uint32_t i = 0; i < RNL_I8255X_TX; i++) {
        memset(tx_at(i), 0, 16 + HEAD);
        tx_at(i)->status = RNL_I8255X_DONE;
    }
    memset(registers, 0, 32);
    registers[RNL_I8255X_MASK] = RNL_I8255X_MASK_ALL;
    *c = (struct rnl_i8255x){.registers = registers,
                             .memory = memory,
                             .bus = BUS,
                             .link_up = true,
                             .tx_next = 1,
                             .rx_tail = RNL_I8255X_RX - 2};
    rx_at(c->rx_tail)->command = RNL_I8255X_END;
}

/* ---- what the card does, or others ---- */

static void arrive(struct fuzz_input *in, const struct rnl_i8255x *c)
{
    struct rnl_i8255x_rx *d = rx_at(c->rx_next + fuzz_below(in, 4));
    fuzz_bytes(in, d->frame, HEAD);
    d->count = (uint16_t)fuzz_number(in, 0xc000 | (60 + fuzz_below(in, 1455)));
    d->status = (uint16_t)fuzz_number(in, RNL_I8255X_DONE | RNL_I8255X_OK);
}

static void spoil(struct fuzz_input *in)
{
    const unsigned which = fuzz_below(in, RNL_I8255X_RX + RNL_I8255X_TX);
    void *block = which < RNL_I8255X_RX ? (void *)rx_at(which) : (void *)tx_at(which - RNL_I8255X_RX);
    fuzz_bytes(in, block, 16);
}

static void set_register(struct fuzz_input *in)
{
    const uint32_t at = fuzz_below(in, 20);
    registers[at] = (uint8_t)fuzz_below(in, 256);
}

/* ---- what the driver does ---- */

static void send(struct fuzz_input *in, struct rnl_i8255x *c)
{
    const uint32_t bytes = 60 + fuzz_below(in, RNL_I8255X_FRAME - 59);
    uint8_t *room = rnl_i8255x_room(c);
    if (!room)
        return;
    const size_t at = (size_t)(room - memory);
    FUZZ_MUST(room >= memory && at >= RNL_I8255X_AT_TX + 16 && at % RNL_I8255X_SLOT == 16 &&
              at < RNL_I8255X_AT_TX + RNL_I8255X_TX * RNL_I8255X_SLOT);
    memset(room, 0, HEAD);
    rnl_i8255x_post(c, bytes);
}

static void receive(struct rnl_i8255x *c)
{
    struct rnl_xdp_datagram d;
    uint32_t bytes = 0;
    const uint8_t *frame = rnl_i8255x_next(c, &bytes);
    if (!frame)
        return;
    const size_t at = (size_t)(frame - memory);
    FUZZ_MUST(frame >= memory && at >= RNL_I8255X_AT_RX + 16 && at % RNL_I8255X_SLOT == 16 &&
              at < RNL_I8255X_AT_RX + RNL_I8255X_RX * RNL_I8255X_SLOT && bytes <= RNL_I8255X_SLOT - 16);
    if (rnl_xdp_frame_read(frame, bytes, &d))
        FUZZ_MUST(d.at <= bytes && d.bytes <= bytes - d.at);
    rnl_i8255x_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, data + size};
    struct rnl_i8255x c;
    begin(&c);
    for (int i = 0; i < STEPS && fuzz_more(&in); i++)
        switch (fuzz_below(&in, 8)) {
        case 0:
            spoil(&in);
            break;
        case 1:
            set_register(&in);
            break;
        case 2:
            arrive(&in, &c);
            break;
        case 3:
            send(&in, &c);
            break;
        case 4:
            rnl_i8255x_kick(&c);
            break;
        case 5:
            rnl_i8255x_restart(&c);
            break;
        default:
            receive(&c);
        }
    return 0;
}
