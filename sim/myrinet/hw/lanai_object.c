/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanai_object.c - reads a relocatable ELF32 big-endian object for LANai: lays code, then data out in SRAM, and applies
 * the relocations that clang emits. Every offset is checked against the object's size before it is used. */
#include "sim/myrinet/hw/lanai.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTIONS = 64, ELF_HEADER = 52, SECTION_HEADER = 40, SYMBOL = 16, RELA = 12, MACHINE_LANAI = 244 };
enum { SHT_SYMTAB_ = 2, SHT_RELA_ = 4, SHT_NOBITS_ = 8, SHF_ALLOC_ = 2, SHF_CODE_ = 4, STACK_ROOM = 64 << 10 };
enum { R_NONE, R_21, R_21_F, R_25, R_32, R_HI16, R_LO16 };

struct object {
    const uint8_t *bytes;
    size_t n;
    uint32_t sections, table;
    uint32_t base[SECTIONS]; /* in SRAM, of those that are there */
};
struct section {
    uint32_t type, flags, offset, size, link, info, align;
};

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t be16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

/* Finds section i, whose bytes have to lie within the object, unless it has none there. */
static int section_of(const struct object *o, uint32_t i, struct section *out)
{
    if (i >= o->sections)
        return -1;
    const uint8_t *h = o->bytes + o->table + (size_t)SECTION_HEADER * i;
    struct section s = {be32(h + 4), be32(h + 8), be32(h + 16), be32(h + 20), be32(h + 24), be32(h + 28), be32(h + 32)};
    if (s.type != SHT_NOBITS_ && (s.offset > o->n || s.size > o->n - s.offset))
        return -1;
    *out = s;
    return 0;
}

static int wrong(const char *what)
{
    return rnl_fail(RNL_ERR_ARG, "this is no LANai object that can be loaded: %s; clang-14 --target=lanai makes one",
                    what);
}

static int header(struct object *o)
{
    if (o->n < ELF_HEADER || memcmp(o->bytes, "\177ELF\1\2\1", 7) != 0)
        return wrong("its first bytes are not those of a 32-bit big-endian ELF file");
    if (be16(o->bytes + 16) != 1 || be16(o->bytes + 18) != MACHINE_LANAI)
        return wrong("it is not relocatable, or for another processor");
    o->table = be32(o->bytes + 32);
    o->sections = be16(o->bytes + 48);
    if (o->sections > SECTIONS || o->table > o->n || (size_t)o->sections * SECTION_HEADER > o->n - o->table)
        return wrong("its table of sections ends beyond it");
    return 0;
}

static int lay_out(struct myri_lanai *m, struct object *o)
{
    uint32_t at = 0;
    for (int code = 1; code >= 0; code--) {
        for (uint32_t i = 1; i < o->sections; i++) {
            struct section s;
            if (section_of(o, i, &s) < 0)
                return wrong("a section ends beyond it");
            if (!(s.flags & SHF_ALLOC_) || !!(s.flags & SHF_CODE_) != code)
                continue;
            uint32_t align = s.align < 4 ? 4 : s.align;
            if (align > 4096 || (align & (align - 1)) != 0)
                return wrong("a section is to be aligned to what is no power of two up to 4096");
            at = (at + align - 1) & ~(align - 1);
            if (s.size > (uint32_t)MYRI_LANAI_SRAM - STACK_ROOM - at)
                return rnl_fail(RNL_ERR_ARG,
                                "the firmware's code and data need more than the %d bytes of SRAM that any card has "
                                "beside a stack: make its buffers smaller",
                                MYRI_LANAI_SRAM - STACK_ROOM);
            o->base[i] = at;
            for (uint32_t k = 0; s.type != SHT_NOBITS_ && k < s.size; k++)
                myri_lanai_set_byte(m, at + k, o->bytes[s.offset + k]);
            at += s.size;
        }
        if (code)
            m->code_end = at = (at + 3) & ~3u;
    }
    m->data_end = at;
    return 0;
}

/* The name of a symbol, within the table of strings. */
static const char *name_of(const struct object *o, const struct section *strings, uint32_t at)
{
    if (at >= strings->size || memchr(o->bytes + strings->offset + at, 0, strings->size - at) == NULL)
        return NULL;
    return (const char *)o->bytes + strings->offset + at;
}

static int take_symbols(struct myri_lanai *m, struct object *o)
{
    struct section s, strings;
    for (uint32_t i = 1; i < o->sections; i++) {
        if (section_of(o, i, &s) < 0 || s.type != SHT_SYMTAB_)
            continue;
        if (section_of(o, s.link, &strings) < 0)
            return wrong("symbols without names");
        for (uint32_t k = 1; k < s.size / SYMBOL; k++) {
            const uint8_t *y = o->bytes + s.offset + (size_t)SYMBOL * k;
            uint32_t in = be16(y + 14), type = y[12] & 15;
            const char *name = name_of(o, &strings, be32(y));
            if (!in || in >= o->sections || (type != 1 && type != 2))
                continue;
            if (!name || m->symbols == MYRI_LANAI_SYMBOLS || strlen(name) >= MYRI_LANAI_NAME)
                return wrong("more than 128 symbols, or a name of more than 31 characters");
            struct myri_lanai_symbol *out = &m->symbol[m->symbols++];
            snprintf(out->name, sizeof out->name, "%s", name);
            out->at = o->base[in] + be32(y + 4);
            out->bytes = be32(y + 8);
            if (out->at > MYRI_LANAI_SRAM || out->bytes > MYRI_LANAI_SRAM - out->at)
                return wrong("a symbol outside SRAM");
        }
    }
    return 0;
}

const char *myri_lanai_lacks(const char *symbol)
{
    static const struct {
        const char *part, *says;
    } known[] = {
        {"mul", "the card's processor does not multiply: take shifts and adds, or let the host do it"},
        {"div", "the card's processor does not divide: take shifts and masks of powers of two, or let the host do it"},
        {"mod", "the card's processor does not divide: take shifts and masks of powers of two, or let the host do it"},
        {"df", "the card's processor has no floating point: take integers"},
        {"sf", "the card's processor has no floating point: take integers"},
        {"mem", "firmware has no library: copy or clear word by word, in a volatile object"},
    };
    int of_compiler = strncmp(symbol, "__", 2) == 0 || strncmp(symbol, "mem", 3) == 0;
    for (int pass = 0; of_compiler && pass < 2; pass++) /* __muldf3 is both: floating point comes first */
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            if ((known[i].part[1] == 'f') == !pass && strstr(symbol, known[i].part))
                return known[i].says;
    return "firmware has no library: define it in firmware.c, or leave it";
}

static int undefined(struct myri_lanai *m, const struct object *o, const struct section *symbols, uint32_t name,
                     uint32_t at)
{
    struct section strings;
    const char *is = section_of(o, symbols->link, &strings) < 0 ? NULL : name_of(o, &strings, name);
    m->undefined.at = at;
    snprintf(m->undefined.name, sizeof m->undefined.name, "%s", is && *is ? is : "?");
    return rnl_fail(RNL_ERR_ARG, "the firmware uses %s at address %u, and does not define it; %s", m->undefined.name,
                    at, myri_lanai_lacks(m->undefined.name));
}

static int relocate(struct myri_lanai *m, const struct object *o, const struct section *symbols, uint32_t base,
                    uint32_t limit, const uint8_t *entry)
{
    uint32_t place = be32(entry), info = be32(entry + 4), k = info >> 8;
    if (k >= symbols->size / SYMBOL || place % 4 || place > limit || limit - place < 4)
        return wrong("a relocation outside its section");
    const uint8_t *y = o->bytes + symbols->offset + (size_t)SYMBOL * k;
    uint32_t in = be16(y + 14);
    if (!in || in >= o->sections)
        return undefined(m, o, symbols, be32(y), base + place);
    uint32_t v = o->base[in] + be32(y + 4) + be32(entry + 8), *w = &m->sram[(base + place) >> 2];
    switch (info & 255) {
    case R_NONE:
        return 0;
    case R_21:
        *w = (*w & ~0x7cffffu) | (v >> 16 & 31) << 18 | (v & 0xffff);
        return 0;
    case R_21_F:
        *w = (*w & ~0x7cffffu) | (v >> 16 & 31) << 18 | (v & 0xfffc);
        return 0;
    case R_25:
        *w = (*w & ~0x1fffffcu) | (v & 0x1fffffc);
        return 0;
    case R_32:
        *w = v;
        return 0;
    case R_HI16:
        *w = (*w & ~0xffffu) | v >> 16;
        return 0;
    case R_LO16:
        *w = (*w & ~0xffffu) | (v & 0xffff);
        return 0;
    default:
        return wrong("a kind of relocation that clang does not make for LANai");
    }
}

static int relocate_all(struct myri_lanai *m, const struct object *o)
{
    struct section s, target, symbols;
    for (uint32_t i = 1; i < o->sections; i++) {
        if (section_of(o, i, &s) < 0 || s.type != SHT_RELA_)
            continue;
        if (section_of(o, s.info, &target) < 0 || section_of(o, s.link, &symbols) < 0 || symbols.type != SHT_SYMTAB_)
            return wrong("relocations of nothing");
        if (!(target.flags & SHF_ALLOC_))
            continue;
        for (uint32_t k = 0; k < s.size / RELA; k++) {
            int rc = relocate(m, o, &symbols, o->base[s.info], target.size, o->bytes + s.offset + (size_t)RELA * k);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

int myri_lanai_load(struct myri_lanai *m, const void *object, size_t n)
{
    struct object o = {.bytes = object, .n = n};
    memset(m, 0, sizeof *m);
    int rc = header(&o);
    if (rc < 0)
        return rc;
    m->sram_bytes = MYRI_LANAI_SRAM;
    m->sram = myri_memory_new(MYRI_LANAI_SRAM);
    if (!m->sram)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %d bytes of SRAM", MYRI_LANAI_SRAM);
    rc = lay_out(m, &o);
    if (rc == 0)
        rc = take_symbols(m, &o);
    if (rc == 0)
        rc = relocate_all(m, &o);
    if (rc == 0) {
        m->code = calloc(m->code_end / 4 + 1, sizeof *m->code);
        if (!m->code)
            rc = rnl_fail(RNL_ERR_NO_MEMORY, "no memory for %u instructions", m->code_end / 4);
    }
    if (rc < 0) {
        const struct myri_lanai_symbol lacks = m->undefined;
        myri_lanai_fini(m);
        m->undefined = lacks;
        return rc;
    }
    for (uint32_t a = 0; a < m->code_end; a += 4)
        myri_lanai_decode(m->sram[a >> 2], a, &m->code[a >> 2]);
    m->step1_ps = m->step2_ps = 1000;
    return 0;
}

int myri_lanai_limit(struct myri_lanai *m, uint32_t sram_bytes)
{
    enum { STACK = 4 << 10 };
    if (sram_bytes > MYRI_LANAI_SRAM || sram_bytes < STACK || m->data_end > sram_bytes - STACK)
        return rnl_fail(RNL_ERR_ARG,
                        "the firmware needs %u bytes of SRAM beside a stack of %d, and the card has %u in all: take a "
                        "machine with more (--machine, --set sram=KB)",
                        m->data_end, STACK, sram_bytes);
    m->sram_bytes = sram_bytes;
    return 0;
}

void myri_lanai_line(const char *lines, uint32_t at, char *out, size_t n)
{
    unsigned long line = 0;
    const char *file = NULL;
    size_t length = 0;
    snprintf(out, n, "address %u", at);
    for (const char *t = lines; t && *t;) { /* ADDRESS LINE FILE FUNCTION, ascending */
        char *end;
        unsigned long from = strtoul(t, &end, 16);
        if (end == t || from > at)
            break;
        unsigned long number = strtoul(end, &end, 10);
        end += strspn(end, " ");
        if (number) { /* 0: the compiler's own */
            line = number;
            file = end;
            length = strcspn(file, " ");
        }
        t = end + strcspn(end, "\n");
        t += *t == '\n';
    }
    if (file)
        snprintf(out, n, "%.*s:%lu", (int)length, file, line);
}
