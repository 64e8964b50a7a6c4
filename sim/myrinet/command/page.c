/* SPDX-License-Identifier: BSD-3-Clause
 *
 * page.c - see page.h. */
#include "sim/myrinet/command/page.h"
#include "sim/myrinet/command/say.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK "<!DOCTYPE html>\n<!-- runnel paper report -->\n"

void page_begin(FILE *out, const char *title)
{
    fputs(MARK "<html lang='en'><head><meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>",
          out);
    page_text(out, title);
    fputs(
        "</title>\n<style>\n"
        "body { font: 15px/1.45 sans-serif; color: #222; background: #fff; max-width: 1180px; margin: 1.5em auto; "
        "padding: 0 1em }\n"
        "h1 { font-size: 26px } h2 { font-size: 21px; margin-top: 2em; border-bottom: 1px solid #bbb }\n"
        "h3 { font-size: 16px; margin: 1.6em 0 .3em }\n"
        ".wide { overflow-x: auto } svg { max-width: 100%; height: auto }\n"
        "table { border-collapse: collapse; font-size: 12.5px } td, th { padding: 2px 7px; text-align: left; "
        "vertical-align: top }\n"
        "th { border-bottom: 2px solid #888; background: #fff } tr { border-bottom: 1px solid #e4e4e4 }\n"
        "td.n, th.n { text-align: right; white-space: nowrap }\n"
        "pre { font-size: 12px; line-height: 1.35; overflow-x: auto; background: #f6f6f4; padding: .7em }\n"
        "tr.miss td:last-child, p.miss { color: #a01010; font-weight: bold } tr.in td:last-child, p.in { color: "
        "#12651f }\n"
        "tr.none, p.none { color: #555 } nav a { margin-right: 1em } details { margin: .5em 0 } summary { cursor: "
        "pointer; color: #1d4f91 }\n"
        ".given { color: #12651f } .derived { color: #1d4f91 } .fitted { color: #a01010 } .assumed { color: #6b5200 }\n"
        "</style></head><body>\n<h1>",
        out);
    page_text(out, title);
    fputs("</h1>\n<nav><a href='#summary'>what it comes to</a> <a href='#rows'>rows</a> <a href='#matrix'>matrix</a> "
          "<a href='#figures'>figures</a> <a href='#what-if'>what if</a> <a href='#traces'>traces</a> "
          "<a href='#machines'>machines</a></nav>\n",
          out);
}

void page_end(FILE *out)
{
    fputs("</body></html>\n", out);
}

void page_text(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else
            fputc(*text, out);
}

void page_head(FILE *out, const char *text, int of_numbers)
{
    fputs(of_numbers ? "<th class='n'>" : "<th>", out);
    page_text(out, text);
    fputs("</th>", out);
}

void page_cell(FILE *out, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fputs("<td>", out);
    page_text(out, text);
    fputs("</td>", out);
}

void page_number(FILE *out, const char *format, double v)
{
    char text[40] = "-";
    if (!isnan(v)) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, format, v);
#pragma GCC diagnostic pop
    }
    fprintf(out, "<td class='n'>%s</td>", text);
}

int page_scratch(char out[PAGE_PATH])
{
    const char *in = getenv("TMPDIR");
    int n = snprintf(out, PAGE_PATH, "%s/runnel-paper-XXXXXX", in && *in ? in : "/tmp");
    errno = ENAMETOOLONG;
    return n < PAGE_PATH ? 0 : -1;
}

static FILE *scratch_file(void)
{
    char path[PAGE_PATH];
    int fd = page_scratch(path) < 0 ? -1 : mkstemp(path);
    if (fd < 0)
        return NULL;
    unlink(path);
    FILE *f = fdopen(fd, "w+");
    if (!f)
        close(fd);
    return f;
}

int page_printed(FILE *out, int (*print)(void *), void *arg)
{
    FILE *kept = scratch_file();
    int was = kept ? dup(STDOUT_FILENO) : -1, rc = 1;
    fflush(stdout);
    if (was < 0 || dup2(fileno(kept), STDOUT_FILENO) < 0) {
        rc = myri_cmd_cannot("cannot keep", "what is printed");
    } else {
        rc = print(arg);
        fflush(stdout);
        if (dup2(was, STDOUT_FILENO) < 0 && rc == 0)
            rc = myri_cmd_cannot("cannot go on with", "standard output");
        rewind(kept);
        fputs("<pre>", out);
        for (char line[1024]; fgets(line, sizeof line, kept);)
            page_text(out, line);
        fputs("</pre>\n", out);
    }
    if (was >= 0)
        close(was);
    if (kept)
        fclose(kept);
    return rc;
}

/* A name in a picture begins behind one of these. */
static size_t before_name(const char *p)
{
    static const char *const before[] = {" id=\"", " id='", "href=\"#", "href='#", "url(#"};
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        if (strncmp(p, before[i], strlen(before[i])) == 0)
            return strlen(before[i]);
    return 0;
}

static void put_svg(FILE *out, const char *svg, const char *name, const char *title)
{
    for (const char *p = svg; *p;) {
        size_t n = before_name(p);
        if (n) {
            fprintf(out, "%.*s%s-", (int)n, p, name);
            p += n;
        } else if (strncmp(p, "<title>Gnuplot</title>", 22) == 0) {
            fputs("<title>", out);
            page_text(out, title);
            fputs("</title>", out);
            p += 22;
        } else {
            fputc(*p++, out);
        }
    }
}

int page_picture(FILE *out, const char *dir, const char *name, const char *title)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.svg", dir, name);
    FILE *f = fopen(path, "r");
    long n = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    char *text = n >= 0 ? calloc(1, (size_t)n + 1) : NULL;
    int rc = 1;
    if (text) {
        rewind(f);
        size_t got = fread(text, 1, (size_t)n, f);
        const char *begin = got == (size_t)n ? strstr(text, "<svg") : NULL;
        if (begin) {
            fputs("<div class='wide'>", out);
            put_svg(out, begin, name, title);
            fputs("</div>\n", out);
            rc = 0;
        }
    }
    if (f)
        fclose(f);
    free(text);
    return rc ? myri_cmd_cannot("cannot read", path) : 0;
}

void page_forget(const char *dir)
{
    char path[512];
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
            unlink(path);
        }
    if (d)
        closedir(d);
    rmdir(dir);
}

static int is_report(const char *path)
{
    char begin[sizeof MARK] = "";
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(begin, 1, sizeof begin - 1, f) : 0;
    if (f)
        fclose(f);
    return n == sizeof begin - 1 && strcmp(begin, MARK) == 0;
}

int page_folder(const char *dir, const char *path, int *made)
{
    *made = mkdir(dir, 0777) == 0;
    if (*made)
        return 0;
    DIR *d = errno == EEXIST ? opendir(dir) : NULL;
    if (!d)
        return myri_cmd_cannot("cannot make", dir);
    int old = 0, rc = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        old |= strcmp(e->d_name, "index.html") == 0 && is_report(path);
        if (!old || strcmp(e->d_name, "index.html") != 0)
            rc = myri_cmd_wrong("%s has %s in it, which is no report: name a new or an empty folder", dir, e->d_name);
    }
    closedir(d);
    if (rc == 0 && old)
        printf("overwrites: %s\n", path);
    return rc;
}
