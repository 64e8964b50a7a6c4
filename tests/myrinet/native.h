/* SPDX-License-Identifier: BSD-3-Clause
 *
 * native.h - a system's firmware, the same C, compiled for this machine against registers that do what chance
 * says: engines finish whenever they like, packets bring any bytes, the host's words in SRAM change to anything.
 * Whatever happens, it must start no engine that works, keep within SRAM, and do nothing undefined (sanitizers look at
 * that).
 *
 * The file that includes this has included the firmware, named it (SYSTEM), and says what the host fills before and
 * writes meanwhile, which may be done again and again: it leaves nothing of the run before. Of systems without
 * protection that has to make sense: that it need not would be protection. CONSERVED, if it is there, holds after every
 * turn, PERMITTED of every transfer into the host, and READABLE of every one out of it.
 *
 * With MARKS, packets and transfers come in parts, as chance says, and no byte may be let out of which no mark, or the
 * status, has said that it has come. VALID_BEFORE says whether what ends there is valid to the host: with a wrong CRC
 * it must not be.
 *
 * With FUZZED, it is a target for fuzzers: chance is what the input's bytes say (what the host fills before stays
 * drawn), and what must not be ends the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef FUZZED
#include "fuzz/input.h"

static struct fuzz_input input;
#endif

static uint32_t regs[NIC_REGISTERS], status = HDONE | SDONE, armed, ticking;
static uint64_t seed_given = 1; /* whose run it is; `seed` goes on from there */
static uint32_t turn_is;
static uint64_t seed, sends, dmas, packets, interrupts;

static uint64_t into_host; /* transfers */
static int filling = 1;    /* the host fills the card */

/* One call a statement: C leaves open which of two operands is drawn first. */
static uint32_t chance(uint32_t below)
{
#ifdef FUZZED
    uint32_t drawn = 0;
    if (!filling) {
        fuzz_bytes(&input, &drawn, below <= 256 ? 1 : below <= 65536 ? 2 : 4);
        return drawn % below;
    }
#endif
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % below);
}

static uint32_t any_word(void)
{
    uint32_t low = chance(65536);
    return chance(65536) << 16 | low;
}

static void host_fills(void);
static void host_writes(void);

static void must(int holds, const char *what)
{
    if (!holds) {
        printf("not ok - %s: %s (turn %u of seed %llu)\n", SYSTEM, what, turn_is, (unsigned long long)seed_given);
#ifdef FUZZED
        abort();
#else
        exit(1);
#endif
    }
}

static uint32_t coming; /* bytes of a packet that is on its way in */
#ifdef MARKS
static unsigned char packet[32768];
static uint32_t came, moved, told_came, told_moved, limit; /* bytes; what of them marks have told; of the packet out */
static uint32_t host_limit;                                /* of what goes to the host */

static void come_on(void)
{
    uint32_t more = 4 * chance(1024);
    more = more < coming - came ? more : coming - came;
    memcpy((unsigned char *)(uintptr_t)&card + regs[RMP] + came, packet + came, more);
    came += more;
    if (came == coming) {
        regs[RLEN] = came;
        status |= RECV | (chance(8) ? 0u : CRCERR);
        coming = armed = 0;
        packets++;
    }
}

static int is_there(uint32_t from, uint32_t to)
{
    uint32_t host = status & HDONE || regs[DIR] == TO_HOST ? 0 : regs[CTR];
    return !(host > told_moved && from < regs[LAR] + host && to > regs[LAR] + told_moved) &&
           !(coming > told_came && from < regs[RMP] + coming && to > regs[RMP] + told_came);
}

static void let_out(uint32_t to)
{
    must(to >= limit && to <= regs[SMLT], "a limit goes back, or beyond the end");
    must(is_there(limit, to), "a byte leaves that has not come");
    limit = to;
}

static void let_up(uint32_t to)
{
    must(to >= host_limit && to <= regs[LAR] + regs[CTR],
         "a limit of what goes to the host goes back, or beyond the end");
    must(is_there(host_limit, to), "a byte goes to the host that has not come");
#ifdef VALID_BEFORE
    if (status & CRCERR && to == regs[LAR] + regs[CTR])
        must(!VALID_BEFORE(to), "the host is told that a packet with a wrong CRC is one");
#endif
    host_limit = to;
}
#endif

static void arrive(void)
{
    uint32_t fits = regs[RML] - regs[RMP], words = 1 + chance(12), n;
#ifdef FRAGMENTS
    if (chance(3))
        words = fits / 4;
#endif
#ifdef MARKS
    unsigned char *to = packet;
#else
    unsigned char *to = (unsigned char *)(uintptr_t)&card + regs[RMP];
#endif
    if (words * 4 > fits)
        return;
    for (uint32_t i = 0; i < words; i++) {
        uint32_t w;
        if (chance(4)) {
            w = chance(9);
            w |= chance(4) << 28;
            w |= chance(4) << 16;
        } else {
            w = any_word();
        }
#ifdef LIKELY_WORD /* what an address could be */
        if (chance(2))
            w = LIKELY_WORD();
#endif
        memcpy(to + 4 * i, &w, 4);
    }
#ifdef LIKELY_PACKET /* a whole one that is not refused at once: its words */
    if (chance(2))
        words = LIKELY_PACKET(to, words, fits);
#endif
    n = words * 4;
#ifdef FIRST_WORD /* of a packet that is not refused at once */
    uint32_t first = FIRST_WORD(n);
    if (chance(2))
        memcpy(to, &first, 4);
#endif
#ifdef MARKS
    coming = n;
    came = told_came = 0;
#else
    regs[RLEN] = n;
    status |= RECV | (chance(8) ? 0u : CRCERR);
    armed = 0;
    packets++;
#endif
}

static void happen(void)
{
#ifdef MARKS
    if (regs[DIR] == TO_HOST && host_limit != regs[LAR] + regs[CTR])
        ; /* it waits there */
    else
#endif
        if (!(status & HDONE) && chance(3) == 0)
        status |= HDONE;
#ifdef MARKS
    if (limit != regs[SMLT])
        ; /* it waits there */
    else
#endif
        if (!(status & SDONE) && chance(3) == 0)
        status |= SDONE;
#ifdef MARKS
    if (!(status & HDONE)) {
        uint32_t more = 4 * chance(512);
        moved += more < regs[CTR] - moved ? more : regs[CTR] - moved;
    }
    if (coming)
        come_on();
    else
#endif
        if (armed && !(status & RECV) && chance(4) == 0)
        arrive();
    if (ticking && chance(40) == 0)
        status |= TIMER;
    if (chance(6) == 0)
        host_writes();
}

uint32_t nic_read(unsigned r)
{
    must(r < NIC_REGISTERS, "a register that is not there is read");
    if (r == ISR) {
        happen();
        return status;
    }
#ifdef MARKS
    if (r == HMARK)
        return told_moved = status & HDONE ? regs[CTR] : moved;
    if (r == RMARK)
        return status & RECV ? regs[RLEN] : coming ? (told_came = came) : 0;
#endif
    return r == NODE ? 0 : regs[r];
}

void nic_write(unsigned r, uint32_t v)
{
    must(r < NIC_REGISTERS, "a register that is not there is written");
    regs[r] = v;
    switch (r) {
    case CTR:
        must(status & HDONE, "the host DMA engine is started while it works");
        must(regs[LAR] < sizeof card && v <= sizeof card - regs[LAR] && v > 0, "a DMA outside the card");
#ifdef READABLE
        must(regs[DIR] == TO_HOST || READABLE(regs[EAR], v), "memory of the host that is nobody's to send");
#endif
#ifdef PERMITTED
        must(regs[DIR] != TO_HOST || PERMITTED(regs[EAR], regs[LAR], v), "memory of the host that is not open");
#endif
#ifdef MARKS
        moved = told_moved = 0;
        host_limit = regs[LAR];
        if (regs[DIR] == TO_HOST)
            let_up(regs[HML] ? regs[HML] : regs[LAR] + v);
        regs[HML] = 0;
#endif
        status &= ~(uint32_t)HDONE;
        dmas++;
        into_host += regs[DIR] == TO_HOST;
        break;
    case SMLT:
        must(status & SDONE, "the send engine is started while it works");
        must(regs[SMP] < v && v <= sizeof card, "a packet outside the card");
#ifdef MARKS
        limit = regs[SMP];
        let_out(regs[SML] ? regs[SML] : v);
        regs[SML] = 0;
#endif
        status &= ~(uint32_t)SDONE;
        sends++;
        break;
#ifdef MARKS
    case HML:
        if (!(status & HDONE)) {
            let_up(v);
            regs[HML] = 0;
        }
        break;
    case SML:
        if (!(status & SDONE)) {
            let_out(v);
            regs[SML] = 0;
        }
        break;
#endif
    case RML:
        must(!coming, "the room for a packet is moved while one comes in");
        must(regs[RMP] < v && v <= sizeof card, "room outside the card");
        status &= ~(uint32_t)(RECV | CRCERR);
        armed = 1;
        break;
    case HIRQ:
        interrupts++;
        break;
    case TMR:
        status &= ~(uint32_t)TIMER;
        ticking = v != 0;
        break;
    default:
        break;
    }
}

static void begin(void)
{
    memset((void *)(uintptr_t)&card, 0, sizeof card);
    memset(regs, 0, sizeof regs);
    status = HDONE | SDONE;
    armed = ticking = coming = 0;
#ifdef MARKS
    host_limit = 0;
#endif
    sends = dmas = packets = interrupts = into_host = 0;
    filling = 1;
    host_fills();
    filling = 0;
    fw_init();
}

static void turn(void)
{
    fw_step();
#ifdef CONSERVED
    must(CONSERVED, "a packet is lost, or comes from nowhere");
#endif
}

#ifdef FUZZED
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input = (struct fuzz_input){data, data + size};
    seed = 1;
    begin();
    for (uint32_t left = 4096; left > 0 && fuzz_more(&input); left--)
        turn();
    for (uint32_t i = 0; i < 64; i++) /* past the end everything is done at once */
        turn();
    return 0;
}
#else
static int is_number(const char *text, uint64_t *out)
{
    char *end;
    *out = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end;
}

int main(int argc, char **argv)
{
    enum { LEAST = 1000, USUAL = 200000 };
    uint64_t turns = USUAL;
    int right = argc <= 3 && (argc < 2 || is_number(argv[1], &turns)) && (argc < 3 || is_number(argv[2], &seed_given));
    if (!right || turns < LEAST || turns > 0xffffffff) {
        fprintf(stderr, "Usage: %s [TURNS [SEED]]: whole numbers, %d turns or more (%d), and which run it is (1)\n",
                argv[0], LEAST, USUAL);
        return 64;
    }
    seed = seed_given;
    begin();
    for (turn_is = 1; turn_is <= turns && turn_is; turn_is++)
        turn();
#ifdef STAYS_ON_CARD
    int right_transfers = dmas == 0;
#else
    int right_transfers = dmas > turns / 1000;
#endif
    must(sends > turns / 1000 && right_transfers && packets > turns / 1000, "hardly anything happens");
    printf("ok - %s: %llu sends, %llu transfers, %llu packets, %llu interrupts\n", SYSTEM, (unsigned long long)sends,
           (unsigned long long)dmas, (unsigned long long)packets, (unsigned long long)interrupts);
    return 0;
}
#endif
