/* SPDX-License-Identifier: BSD-3-Clause
 *
 * image.c - see image.h. What the file says is checked here, once: each offset and length, before it is followed. */
#include "sim/cluster/image.h"

#include "base/error.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if !defined(DT_RELR)
#define DT_RELRSZ 35
#define DT_RELR   36
#endif

enum { PAGE = 4096, NAMES_TOLD = 160 };
#define IMAGE_MAX ((uint64_t)256 << 20)

struct dynamic { /* what PT_DYNAMIC says; addresses within the image */
    uint64_t symtab, strtab, strsz, rela, relasz, jmprel, pltrelsz, relr, relrsz;
    uint64_t init, initsz, fini, finisz;
};

/* ---- reading ---- */

static int refuse(const struct vc_image *m, const char *why)
{
    return rnl_fail(RNL_ERR_UNSUPPORTED, "%s: %s", m->path, why);
}

static const void *in_file(const struct vc_image *m, uint64_t at, uint64_t bytes)
{
    return at <= m->file_bytes && bytes <= m->file_bytes - at ? m->file + at : NULL;
}

/* What the file holds for [at, at + bytes) of the image. */
static const void *in_image(const struct vc_image *m, uint64_t at, uint64_t bytes)
{
    for (unsigned i = 0; i < m->loads; i++) {
        const struct vc_image_load *l = &m->load[i];
        if (at >= l->at && at - l->at <= l->file_bytes && bytes <= l->file_bytes - (at - l->at))
            return in_file(m, l->file_at + (at - l->at), bytes);
    }
    return NULL;
}

/* A table of one of ELF's structures: all of them hold words of 8 bytes, and lie where those may. */
static const void *table(const void *at)
{
    return (uintptr_t)at % 8 == 0 ? at : NULL;
}

static const void *table_in_file(const struct vc_image *m, uint64_t at, uint64_t bytes)
{
    return table(in_file(m, at, bytes));
}

static const void *table_in_image(const struct vc_image *m, uint64_t at, uint64_t bytes)
{
    return table(in_image(m, at, bytes));
}

/* A word of 8 bytes there is a virtual process's own. */
static bool writable(const struct vc_image *m, uint64_t at)
{
    for (unsigned i = 0; i < m->loads; i++) {
        const struct vc_image_load *l = &m->load[i];
        if (l->write && at >= l->at && l->bytes >= 8 && at - l->at <= l->bytes - 8)
            return true;
    }
    return false;
}

static int add_load(struct vc_image *m, const Elf64_Phdr *h)
{
    if (m->loads == VC_IMAGE_LOADS)
        return refuse(m, "it has more segments than a program needs");
    if (h->p_filesz > h->p_memsz || h->p_memsz > IMAGE_MAX || h->p_vaddr > IMAGE_MAX ||
        !in_file(m, h->p_offset, h->p_filesz) || (h->p_vaddr - h->p_offset) % PAGE != 0)
        return refuse(m, "its segments are damaged, or larger than the 256 MiB that a virtual process has room for");
    struct vc_image_load *l = &m->load[m->loads++];
    *l = (struct vc_image_load){.at = h->p_vaddr,
                                .file_at = h->p_offset,
                                .file_bytes = h->p_filesz,
                                .bytes = h->p_memsz,
                                .write = (h->p_flags & PF_W) != 0,
                                .execute = (h->p_flags & PF_X) != 0};
    uint64_t end = (l->at + l->bytes + PAGE - 1) / PAGE * PAGE;
    m->bytes = m->bytes > end ? m->bytes : end;
    return 0;
}

static const struct {
    int64_t tag;
    size_t to;
} wanted[] = {
    {DT_SYMTAB, offsetof(struct dynamic, symtab)},       {DT_STRTAB, offsetof(struct dynamic, strtab)},
    {DT_STRSZ, offsetof(struct dynamic, strsz)},         {DT_RELA, offsetof(struct dynamic, rela)},
    {DT_RELASZ, offsetof(struct dynamic, relasz)},       {DT_JMPREL, offsetof(struct dynamic, jmprel)},
    {DT_PLTRELSZ, offsetof(struct dynamic, pltrelsz)},   {DT_RELR, offsetof(struct dynamic, relr)},
    {DT_RELRSZ, offsetof(struct dynamic, relrsz)},       {DT_INIT_ARRAY, offsetof(struct dynamic, init)},
    {DT_INIT_ARRAYSZ, offsetof(struct dynamic, initsz)}, {DT_FINI_ARRAY, offsetof(struct dynamic, fini)},
    {DT_FINI_ARRAYSZ, offsetof(struct dynamic, finisz)},
};

static int read_dynamic(const struct vc_image *m, const Elf64_Phdr *h, struct dynamic *d)
{
    const Elf64_Dyn *e = table_in_file(m, h->p_offset, h->p_filesz);
    if (!e)
        return refuse(m, "its dynamic section is damaged");
    memset(d, 0, sizeof *d);
    for (size_t i = 0; i < h->p_filesz / sizeof *e && e[i].d_tag != DT_NULL; i++) {
        if (e[i].d_tag == DT_TEXTREL)
            return refuse(m, "it changes its own code: compile it with -fPIC");
        for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++)
            if (e[i].d_tag == wanted[k].tag)
                *(uint64_t *)(void *)((char *)d + wanted[k].to) = e[i].d_un.d_val;
    }
    return 0;
}

static int read_headers(struct vc_image *m, struct dynamic *d)
{
    const Elf64_Ehdr *e = table_in_file(m, 0, sizeof *e);
    if (!e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_ident[EI_CLASS] != ELFCLASS64 ||
        e->e_machine != EM_X86_64 || e->e_type != ET_DYN || e->e_phentsize != sizeof(Elf64_Phdr))
        return refuse(m, "it is no shared object for x86-64: compile the program with -fPIC -shared");
    const Elf64_Phdr *h = table_in_file(m, e->e_phoff, (uint64_t)e->e_phnum * sizeof *h);
    const Elf64_Phdr *dynamic = NULL;
    int status = 0;
    if (!h)
        return refuse(m, "its program headers are damaged");
    for (unsigned i = 0; i < e->e_phnum && status == 0; i++) {
        if (h[i].p_type == PT_LOAD)
            status = add_load(m, &h[i]);
        else if (h[i].p_type == PT_DYNAMIC)
            dynamic = &h[i];
        else if (h[i].p_type == PT_INTERP)
            return refuse(m, "it is an executable: compile the program with -fPIC -shared");
    }
    for (unsigned i = 0; i < e->e_phnum && status == 0; i++) {
        if (h[i].p_type == PT_TLS) {
            if (!in_file(m, h[i].p_offset, h[i].p_filesz) || h[i].p_memsz > IMAGE_MAX || h[i].p_align > PAGE)
                return refuse(m, "its thread-local storage is damaged");
            m->tls_file_at = h[i].p_offset;
            m->tls_file_bytes = h[i].p_filesz;
            m->tls_bytes = h[i].p_memsz;
            m->tls_align = h[i].p_align;
        } else if (h[i].p_type == PT_GNU_EH_FRAME) {
            const unsigned char *head = in_image(m, h[i].p_vaddr, 8);
            int32_t offset;
            if (head && head[0] == 1 && head[1] == 0x1b) { /* relative to itself, 4 bytes: what linkers write */
                memcpy(&offset, head + 4, sizeof offset);
                m->eh_frame = h[i].p_vaddr + 4 + (uint64_t)(int64_t)offset;
            }
        }
    }
    if (status < 0)
        return status;
    return dynamic ? read_dynamic(m, dynamic, d) : refuse(m, "it is no shared object: compile it with -fPIC -shared");
}

/* The larger table, for reports; both name main, unless the program was stripped and main hidden. */
static void read_symbols(struct vc_image *m)
{
    const Elf64_Ehdr *e = (const void *)m->file;
    const Elf64_Shdr *s = table_in_file(m, e->e_shoff, (uint64_t)e->e_shnum * sizeof *s);
    for (unsigned i = 0; s && e->e_shentsize == sizeof *s && i < e->e_shnum; i++) {
        if ((s[i].sh_type != SHT_SYMTAB && s[i].sh_type != SHT_DYNSYM) || s[i].sh_link >= e->e_shnum ||
            (m->symbols && s[i].sh_type == SHT_DYNSYM))
            continue;
        const Elf64_Shdr *t = &s[s[i].sh_link];
        const char *names = in_file(m, t->sh_offset, t->sh_size);
        const void *symbols = table_in_file(m, s[i].sh_offset, s[i].sh_size);
        if (!names || !symbols || t->sh_size == 0 || names[t->sh_size - 1] != '\0')
            continue;
        m->symbols = symbols;
        m->symbols_n = s[i].sh_size / sizeof(Elf64_Sym);
        m->names = names;
        m->names_bytes = t->sh_size;
    }
}

static const char *name_of(const struct vc_image *m, const Elf64_Sym *s)
{
    return s->st_name < m->names_bytes ? m->names + s->st_name : "";
}

static int find_main(struct vc_image *m)
{
    const Elf64_Sym *s = m->symbols;
    for (size_t i = 0; i < m->symbols_n; i++)
        if (s[i].st_shndx != SHN_UNDEF && ELF64_ST_TYPE(s[i].st_info) == STT_FUNC &&
            strcmp(name_of(m, &s[i]), "main") == 0)
            m->main = s[i].st_value;
    return m->main != 0 && in_image(m, m->main, 1) ? 0
                                                   : refuse(m, "it has no function main (or was stripped of its name)");
}

const char *vc_image_name(const struct vc_image *m, uint64_t at, uint64_t *in)
{
    const Elf64_Sym *s = m->symbols, *best = NULL;
    for (size_t i = 0; i < m->symbols_n; i++)
        if (s[i].st_shndx != SHN_UNDEF && ELF64_ST_TYPE(s[i].st_info) == STT_FUNC && s[i].st_value <= at &&
            (!best || s[i].st_value > best->st_value))
            best = &s[i];
    if (!best)
        return NULL;
    *in = at - best->st_value;
    return name_of(m, best);
}

/* ---- binding ---- */

struct refused {
    unsigned n;
    char names[NAMES_TOLD];
};

static void add_refused(struct refused *r, const char *name)
{
    size_t have = strlen(r->names), more = strlen(name);
    r->n++;
    if (have + more + 3 < sizeof r->names)
        snprintf(r->names + have, sizeof r->names - have, "%s%s", have ? ", " : "", name);
}

static int add_fix(struct vc_image *m, uint64_t at, enum vc_image_base base, uint64_t value)
{
    if (!writable(m, at))
        return refuse(m, "a relocation lies outside its data");
    m->fix[m->fixes++] = (struct vc_image_fix){.at = at, .value = value, .base = base};
    return 0;
}

static int bind_name(struct vc_image *m, const Elf64_Rela *r, const Elf64_Sym *s, const char *name, vc_image_bind *bind,
                     struct refused *refused)
{
    uint64_t addend = (uint64_t)r->r_addend;
    if (ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC)
        return refuse(m, "it chooses functions at load (IFUNC), which has no place here");
    if (s->st_shndx != SHN_UNDEF) /* its own first: never another process's, or ours of the same name */
        return add_fix(m, r->r_offset, VC_FIX_IMAGE, s->st_value + addend);
    struct vc_binding to = bind(name);
    if (to.kind == VC_BIND_ARENA)
        return add_fix(m, r->r_offset, VC_FIX_ARENA, to.value + addend);
    if (to.kind == VC_BIND_ADDRESS)
        return add_fix(m, r->r_offset, VC_FIX_VALUE, to.value + addend);
    if (ELF64_ST_BIND(s->st_info) != STB_WEAK)
        add_refused(refused, name);
    return add_fix(m, r->r_offset, VC_FIX_VALUE, 0); /* a weak one may be absent */
}

static int relocate_one(struct vc_image *m, const Elf64_Rela *r, const struct dynamic *d, vc_image_bind *bind,
                        struct refused *refused)
{
    uint64_t index = ELF64_R_SYM(r->r_info);
    const Elf64_Sym *s = table_in_image(m, d->symtab + index * sizeof *s, sizeof *s);
    const char *names = in_image(m, d->strtab, d->strsz);
    if (!s || !names || d->strsz == 0 || names[d->strsz - 1] != '\0' || s->st_name >= d->strsz)
        return refuse(m, "its symbols are damaged");
    const char *name = names + s->st_name;
    switch (ELF64_R_TYPE(r->r_info)) {
    case R_X86_64_NONE:
        return 0;
    case R_X86_64_RELATIVE:
        return add_fix(m, r->r_offset, VC_FIX_IMAGE, (uint64_t)r->r_addend);
    case R_X86_64_DTPMOD64:
        return add_fix(m, r->r_offset, VC_FIX_VALUE, 1);
    case R_X86_64_DTPOFF64:
        if (s->st_shndx == SHN_UNDEF) {
            add_refused(refused, name); /* somebody else's thread-local variable */
            return 0;
        }
        return add_fix(m, r->r_offset, VC_FIX_VALUE, s->st_value + (uint64_t)r->r_addend);
    case R_X86_64_GLOB_DAT:
    case R_X86_64_JUMP_SLOT:
    case R_X86_64_64:
        return bind_name(m, r, s, name, bind, refused);
    case R_X86_64_TPOFF64:
    case R_X86_64_TLSDESC:
        return refuse(m, "its thread-local variables are of a model that only a process can have: compile it with "
                         "-ftls-model=global-dynamic -mtls-dialect=gnu");
    default:
        return rnl_fail(RNL_ERR_UNSUPPORTED,
                        "%s: relocations of type %u are not known here (%s): compile it with -fPIC -shared", m->path,
                        (unsigned)ELF64_R_TYPE(r->r_info), name);
    }
}

/* Packed relative ones: an address, then bits for the 63 words that follow it. */
static int relocate_packed(struct vc_image *m, const uint64_t *packed, size_t n)
{
    uint64_t at = 0;
    int status = 0;
    for (size_t i = 0; i < n && status == 0; i++) {
        uint64_t one = at = packed[i] & 1 ? at : packed[i], bits = packed[i] & 1 ? packed[i] >> 1 : 1;
        for (; bits != 0 && status == 0; bits >>= 1, one += 8) {
            const void *word = bits & 1 ? in_image(m, one, 8) : NULL;
            uint64_t value = 0;
            if (word)
                memcpy(&value, word, sizeof value);
            if (bits & 1)
                status = word ? add_fix(m, one, VC_FIX_IMAGE, value) : refuse(m, "a packed relocation is damaged");
        }
        at += packed[i] & 1 ? 63 * 8 : 8;
    }
    return status;
}

static int relocate(struct vc_image *m, const struct dynamic *d, vc_image_bind *bind)
{
    size_t rela_n = d->relasz / sizeof(Elf64_Rela), jump_n = d->pltrelsz / sizeof(Elf64_Rela), packed_n = d->relrsz / 8;
    const Elf64_Rela *rela = table_in_image(m, d->rela, d->relasz), *jump = table_in_image(m, d->jmprel, d->pltrelsz);
    const uint64_t *packed = table_in_image(m, d->relr, d->relrsz);
    struct refused refused = {.n = 0};
    int status = 0;
    if ((rela_n && !rela) || (jump_n && !jump) || (packed_n && !packed))
        return refuse(m, "its relocations are damaged");
    m->fix = calloc(rela_n + jump_n + 63 * packed_n + 1, sizeof *m->fix);
    if (!m->fix)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the relocations of %s", m->path);
    if (packed_n)
        status = relocate_packed(m, packed, packed_n);
    for (size_t i = 0; i < rela_n && status == 0; i++)
        status = relocate_one(m, &rela[i], d, bind, &refused);
    for (size_t i = 0; i < jump_n && status == 0; i++)
        status = relocate_one(m, &jump[i], d, bind, &refused);
    if (status < 0 || refused.n == 0)
        return status;
    return rnl_fail(RNL_ERR_UNSUPPORTED, "%s: no shim for %s%s: a program of the virtual cluster cannot use %s",
                    m->path, refused.names, strlen(refused.names) + 40 > NAMES_TOLD ? " ..." : "",
                    refused.n == 1 ? "that function" : "these functions");
}

static int tables(struct vc_image *m, const struct dynamic *d)
{
    if ((d->initsz && !table_in_image(m, d->init, d->initsz)) || (d->finisz && !table_in_image(m, d->fini, d->finisz)))
        return refuse(m, "its tables of constructors are damaged");
    m->init = d->init;
    m->inits = d->initsz / 8;
    m->fini = d->fini;
    m->finis = d->finisz / 8;
    return 0;
}

/* ---- life ---- */

static int read_file(struct vc_image *m)
{
    struct stat st;
    m->fd = open(m->path, O_RDONLY | O_CLOEXEC);
    if (m->fd < 0 || fstat(m->fd, &st) < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot open the program %s", m->path);
    if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(Elf64_Ehdr))
        return refuse(m, "it is no shared object: compile the program with -fPIC -shared");
    m->file_bytes = (size_t)st.st_size;
    void *file = mmap(NULL, m->file_bytes, PROT_READ, MAP_PRIVATE, m->fd, 0);
    if (file == MAP_FAILED)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot read the program %s", m->path);
    m->file = file;
    return 0;
}

int vc_image_open(const char *path, vc_image_bind *bind, struct vc_image **out)
{
    struct dynamic d;
    struct vc_image *m = calloc(1, sizeof *m);
    if (!m || !(m->path = strdup(path))) {
        free(m);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the program %s", path);
    }
    m->fd = -1;
    int status = read_file(m);
    if (status == 0)
        status = read_headers(m, &d);
    if (status == 0) {
        read_symbols(m);
        status = find_main(m);
    }
    if (status == 0)
        status = tables(m, &d);
    if (status == 0)
        status = relocate(m, &d, bind);
    if (status < 0) {
        vc_image_close(m);
        return status;
    }
    *out = m;
    return 0;
}

void vc_image_close(struct vc_image *m)
{
    if (!m)
        return;
    if (m->file)
        munmap((void *)(uintptr_t)m->file, m->file_bytes);
    if (m->fd >= 0)
        close(m->fd);
    free(m->fix);
    free(m->path);
    free(m);
}

int vc_image_map(const struct vc_image *m, unsigned char *base)
{
    for (unsigned i = 0; i < m->loads; i++) {
        const struct vc_image_load *l = &m->load[i];
        uint64_t from = l->at & ~(uint64_t)(PAGE - 1), before = l->at - from;
        if (l->write || l->bytes == 0)
            continue;
        int protection = PROT_READ | (l->execute ? PROT_EXEC : 0);
        if (mmap(base + from, l->bytes + before, protection, MAP_PRIVATE | MAP_FIXED, m->fd,
                 (off_t)(l->file_at - before)) == MAP_FAILED)
            return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot map a copy of %s", m->path);
    }
    return 0;
}

void vc_image_fill(const struct vc_image *m, unsigned char *base, unsigned char *arena)
{
    for (unsigned i = 0; i < m->loads; i++) {
        const struct vc_image_load *l = &m->load[i];
        if (l->write)
            memcpy(base + l->at, m->file + l->file_at, l->file_bytes);
    }
    const uint64_t bases[] = {(uint64_t)(uintptr_t)base, (uint64_t)(uintptr_t)arena, 0};
    for (size_t i = 0; i < m->fixes; i++) {
        uint64_t value = bases[m->fix[i].base] + m->fix[i].value;
        memcpy(base + m->fix[i].at, &value, sizeof value);
    }
}
