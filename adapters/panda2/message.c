/* SPDX-License-Identifier: BSD-3-Clause
 *
 * message.c - messages as stacks of blocks, and their fragments. */
#include "panda2.h"

enum { ALIGN = 8, ROOM = 512 /* for the headers of layers above */, PIECE = 8192 /* data bytes of a fragment */ };

static size_t rounded(int length, int align)
{
    if (length < 0 || align > ALIGN)
        pan2_fail("a block of %d bytes, aligned to %d, is none of a message: it has 0 bytes and more, aligned to at "
                  "most %d",
                  length, align, ALIGN);
    return ((size_t)length + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static void need_room(pan_msg_p m, size_t more)
{
    if (m->room - m->size >= more)
        return;
    size_t room = m->room ? m->room : 256;
    while (room < m->size + more + ROOM)
        room *= 2;
    m->data = pan_realloc(m->data, room);
    m->room = room;
}

pan_msg_p pan_msg_create(void)
{
    return pan_calloc(1, sizeof(struct pan2_msg));
}

void pan_msg_clear(pan_msg_p m)
{
    if (!m)
        return;
    if (m->releases > 0) {
        struct release r = m->release[--m->releases];
        r.f(m, r.arg);
        return;
    }
    pan_fragment_clear(m->fragment);
    free(m->release);
    free(m->data);
    free(m);
}

void pan_msg_empty(pan_msg_p m)
{
    m->size = 0;
}

void *pan_msg_push(pan_msg_p m, int length, int align)
{
    size_t n = rounded(length, align);
    need_room(m, n);
    unsigned char *at = m->data + m->size;
    if (n > (size_t)length)
        memset(at + length, 0, n - (size_t)length); /* it travels, too */
    m->size += n;
    return at;
}

static void *top(pan_msg_p m, int length, int align)
{
    size_t n = rounded(length, align);
    if (m->size == 0 && length > 0)
        return NULL;
    if (n > m->size)
        pan2_fail("%d bytes were asked of a message that has %zu", length, m->size);
    return m->data + m->size - n;
}

void *pan_msg_pop(pan_msg_p m, int length, int align)
{
    unsigned char *at = top(m, length, align);
    if (at)
        m->size = (size_t)(at - m->data);
    return at;
}

void *pan_msg_look(pan_msg_p m, int length, int align)
{
    return top(m, length, align);
}

static void append(pan_msg_p m, const void *data, size_t n)
{
    need_room(m, n);
    if (n)
        memcpy(m->data + m->size, data, n);
    m->size += n;
}

void pan_msg_copy(pan_msg_p m, pan_msg_p copy)
{
    copy->size = 0;
    append(copy, m->data, m->size);
}

void pan_msg_release_push(pan_msg_p m, pan_msg_release_f f, void *arg)
{
    if (m->releases == m->release_room) {
        m->release_room = m->release_room ? 2 * m->release_room : 4;
        m->release = pan_realloc(m->release, (size_t)m->release_room * sizeof *m->release);
    }
    m->release[m->releases++] = (struct release){f, arg};
}

void pan_msg_release_pop(pan_msg_p m)
{
    if (m->releases == 0)
        pan2_fail("a release function was popped from a message that has none");
    m->releases--;
}

pan_msg_p pan2_msg_of(void *data, size_t n)
{
    pan_msg_p m = pan_msg_create();
    m->data = data;
    m->room = n;
    m->size = n & ~(size_t)(ALIGN - 1); /* of whole blocks, or its sender lies */
    return m;
}

pan_msg_p pan2_msg_take(struct pan2_arrived *in)
{
    pan_msg_p m = pan2_msg_of(in->data, in->n);
    in->data = NULL;
    return m;
}

/* ---- fragments ---- */

pan_fragment_p pan_fragment_create(void)
{
    return pan_calloc(1, sizeof(struct pan2_fragment));
}

void pan_fragment_clear(pan_fragment_p f)
{
    if (!f)
        return;
    free(f->own);
    free(f);
}

static pan_fragment_p cut(pan_msg_p m)
{
    struct pan2_fragment *f = m->fragment;
    f->data = m->data + m->cut;
    f->n = m->size - m->cut < PIECE ? m->size - m->cut : PIECE;
    m->cut += f->n;
    f->flags = m->cut == m->size ? PAN_FRAGMENT_LAST : 0;
    return f;
}

pan_fragment_p pan_msg_fragment(pan_msg_p m, pan_nsap_p nsap)
{
    if (!m->fragment)
        m->fragment = pan_fragment_create();
    m->fragment->nsap = nsap;
    m->cut = 0;
    cut(m)->flags |= PAN_FRAGMENT_FIRST;
    return m->fragment;
}

pan_fragment_p pan_msg_next(pan_msg_p m)
{
    return !m->fragment || m->fragment->flags & PAN_FRAGMENT_LAST ? NULL : cut(m);
}

void pan_msg_assemble(pan_msg_p m, pan_fragment_p f, int preserve)
{
    (void)preserve;
    append(m, f->data, f->n);
}

void pan_fragment_nsap(pan_fragment_p f, pan_nsap_p nsap)
{
    f->nsap = nsap;
}

int pan_fragment_copy(pan_fragment_p f, pan_fragment_p copy, int preserve)
{
    unsigned char *own = pan_malloc(f->n);
    (void)preserve;
    if (f->n)
        memcpy(own, f->data, f->n);
    free(copy->own);
    *copy = *f;
    copy->own = copy->data = own;
    return 1;
}

void *pan_fragment_header(pan_fragment_p f)
{
    return f->header;
}

int pan_fragment_flags(pan_fragment_p f)
{
    return f->flags;
}

int pan_fragment_length(pan_fragment_p f)
{
    return (int)f->n;
}
