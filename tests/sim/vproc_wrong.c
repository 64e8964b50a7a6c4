/* SPDX-License-Identifier: BSD-3-Clause
 *
 * vproc_wrong.c - does what a program of the virtual cluster must not do, by name. Rank 1 does it, after 5 ms. */
#include <runnel/fm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__ /* knows no noclone, and does not clone */
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noinline, noclone))
#endif

static volatile int sink, zero;
static void *volatile block;
static volatile char *volatile nowhere = (volatile char *)8;

KEPT static void spin(void)
{
    for (;;)
        sink++;
}

KEPT static void middle(void)
{
    spin();
    sink++;
}

KEPT static void calls(void)
{
    for (;;) {
        block = malloc(10);
        free(block);
    }
}

KEPT static void touch(void)
{
    *nowhere = 1;
}

KEPT static int deep(int n)
{
    volatile char room[4096];
    room[n % 4096] = (char)n;
    return n < zero ? room[0] : deep(n + 1) + room[0];
}

KEPT static void system_call(void)
{
    long number = 39;
    __asm__ volatile("syscall" : "+a"(number) : : "rcx", "r11", "memory");
}

KEPT static void counter(void)
{
    unsigned low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    sink = (int)(low + high);
}

KEPT static void clock_loop(void)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec < begin.tv_sec + 3);
    puts("three seconds later");
}

KEPT static void gap(void)
{
    struct timespec last, now;
    long longest = 0;
    clock_gettime(CLOCK_MONOTONIC, &last);
    for (int i = 0; i < 1000; i++, last = now) {
        usleep(100);
        clock_gettime(CLOCK_MONOTONIC, &now);
        long us = (now.tv_sec - last.tv_sec) * 1000000 + (now.tv_nsec - last.tv_nsec) / 1000;
        longest = us > longest ? us : longest;
    }
    printf("longest sleep %ld us\n", longest);
}

KEPT static void double_free(void)
{
    block = malloc(100);
    free(block);
    free(block);
    sink++; /* not by a jump */
}

KEPT static void bad_pointer(void)
{
    FM_stream *s = FM_begin_message(0, 1000, 1);
    FM_send_piece(s, (const void *)nowhere, 1000);
    FM_end_message(s);
}

static void do_it(const char *what)
{
    if (strcmp(what, "spin") == 0)
        middle();
    else if (strcmp(what, "calls") == 0)
        calls();
    else if (strcmp(what, "touch") == 0)
        touch();
    else if (strcmp(what, "deep") == 0)
        sink = deep(0);
    else if (strcmp(what, "divide") == 0)
        sink = 100 / zero;
    else if (strcmp(what, "syscall") == 0)
        system_call();
    else if (strcmp(what, "counter") == 0)
        counter();
    else if (strcmp(what, "clock") == 0)
        clock_loop();
    else if (strcmp(what, "gap") == 0)
        gap();
    else if (strcmp(what, "free") == 0)
        double_free();
    else if (strcmp(what, "pointer") == 0)
        bad_pointer();
    else if (strcmp(what, "abort") == 0)
        abort();
    else if (strcmp(what, "raise") == 0)
        raise(SIGTERM);
    else if (strcmp(what, "exit") == 0)
        exit(7);
    else if (strcmp(what, "silent") == 0)
        FM_wait(-1);
}

int main(int argc, char **argv)
{
    FM_initialize();
    if (FM_nodeid == 1 && argc > 1) {
        usleep(5000);
        do_it(argv[1]);
    }
    FM_finalize();
    puts("done");
    return 0;
}
