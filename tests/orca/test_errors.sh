#!/usr/bin/env bash
# Rules of the language that a program can break: the compiler names the place and what was expected; what only shows when
# the program runs ends it with the line. Each case is a body of OrcaMain, after declarations.
# shellcheck disable=SC2016 # $ is Orca's
# shellcheck source=tests/orca/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
shown='said m.imp'
printf 'MODULE SPECIFICATION m;\n PROCESS OrcaMain();\nEND;\n' >m.spf

program() { # DECLARATIONS LOCALS STATEMENTS: declarations in line 2, locals in line 4, statements in line 6
    printf 'MODULE IMPLEMENTATION m;\n%s\nPROCESS OrcaMain();\n%s\nBEGIN\n%s\nEND;\nEND;\n' "$1" "$2" "$3" >m.imp
}

rejects() { # PATTERN DECLARATIONS LOCALS STATEMENTS
    program "$2" "$3" "$4"
    orcac m.imp -o m
    [ $? = 1 ] && grep -q -- "$1" said && grep -q '^ *^$' said && [ -z "$(grep ': error: ' said | sort | uniq -d)" ]
    ok "rejected, and told once: $4 $2: $1" $?
}

run() { # the program; what it and the compiler say is left in $dir/said
    orcac -O0 m.imp -o m && ./m >said 2>&1
}

fails() { # PATTERN DECLARATIONS LOCALS STATEMENTS
    program "$2" "$3" "$4"
    run
    [ $? = 1 ] && grep -q -- "^cpu 0: m.imp:6: $1" said
    ok "ends: $4: $1" $?
}

prints() { # TEXT DECLARATIONS LOCALS STATEMENTS
    program "$2" "$3" "$4"
    run
    [ "$(cat said)" = "$1" ]
    ok "prints $1: $4" $?
}

rejects 'm.imp:6:6: error: the value is of type integer, but real' '' 'r: real;' 'r := 1;'
rejects 'm.imp:7:1: error: ; after the statement was expected' '' 'i: integer;' 'IF i = 1 THEN i := 1; FI'
rejects 'x is not declared' '' '' 'x := 1;'
rejects 'is declared twice' '' 'i: integer; i: real;' ''
rejects 'a character stands between single quotes' '' 'c: char;' 'c := "a";'
rejects 'nothing may change' '' '' 'FOR i IN 1 .. 3 DO i := 2; OD;'
rejects 'stands in none' '' '' 'EXIT;'
rejects 'result of f cannot be ignored' 'FUNCTION f(): integer; BEGIN RETURN 1; END;' '' 'f();'
rejects 'no RETURN with a value' 'FUNCTION f(): integer; BEGIN END;' '' ';'
rejects 'illegal alias' 'FUNCTION f(a, b: SHARED integer); BEGIN END;' 'i: integer;' 'f(i, i);'
rejects 'different\|of type Q, but P was expected' 'TYPE P = RECORD a: integer; END; TYPE Q = RECORD a: integer; END;' 'p: P; q: Q;' 'p := q;'
rejects 'another branch has this label' '' 'i: integer;' 'CASE i OF 1 => ; | 1 .. 2 => ; ESAC;'
rejects 'division by zero' '' 'i: integer;' 'i := 1 / 0;'
rejects 'cannot be compared' 'TYPE G = GRAPH a: integer; NODES b: integer; END;' 'g, h: G;' 'ASSERT(g = h);'
rejects 'is no process' '' '' 'FORK NCPUS();' 
rejects 'only a DATA MODULE\|a DATA MODULE has' 'x: integer;' '' ';'
rejects 'no unit Nobody' 'IMPORT Nobody;' '' ';'
rejects 'neither begins nor ends' '' 'a__b: integer;' ';'
rejects 'nested more than' '' 'i: integer;' "i := $(printf '(%.0s' $(seq 300))1$(printf ')%.0s' $(seq 300));"
rejects 'the string has no end' '' '' 'Write("a);'
rejects 'digit 9 does not exist' '' 'i: integer;' 'i := 19B;'
rejects 'no value of\|has no field' 'TYPE P = RECORD a: integer; END;' 'p: P;' 'p.b := 1;'
rejects '1 index was expected' 'TYPE A = ARRAY[integer] OF integer;' 'a: A[1 .. 2];' 'a[1, 2] := 1;'
fails 'the index is 3; the bounds of the array are 1 .. 2' 'TYPE A = ARRAY[integer] OF integer;' 'a: A[1 .. 2]; i: integer;' 'i := 3; a[i] := 1;'
fails 'the index 1 is used in an empty array' 'TYPE A = ARRAY[integer] OF integer;' 'a: A;' 'a[1] := 1;'
fails 'index 2 is 9' 'TYPE A = ARRAY[integer, integer] OF integer;' 'a: A[1 .. 2, 1 .. 2];' 'a[1, 9] := 1;'
fails 'division by zero' '' 'i: integer;' 'i := 1 / i;'
fails 'division by zero' '' 'r: real;' 'r := 1.0 / r;'
fails 'the right operand of % is 0' '' 'i: integer;' 'i := 1 % i;'
fails 'FROM of an empty set' 'TYPE S = SET OF integer;' 's: S; i: integer;' 'i := FROM(s);'
fails 'the node name is NIL' 'TYPE R = NODENAME OF G; TYPE G = GRAPH r: R; NODES b: integer; END;' 'g: G;' 'g!r.b := 1;'
fails 'the node name is that of a node that was deleted' 'TYPE R = NODENAME OF G; TYPE G = GRAPH r: R; NODES b: integer; END;' 'g: G; r: R;' 'r := ADDNODE(g); DELETENODE(g, r); g[r].b := 1;'
fails "the union's tag is 0" 'TYPE U = UNION (t: boolean) false => a: integer; true => b: real; END;' 'u: U(false);' 'u.b := 1.0;'
fails 'the union has no value yet' 'TYPE U = UNION (t: boolean) false => a: integer; true => b: real; END;' 'u: U;' 'u.b := 1.0;'
fails 'no branch of this CASE is for the value 5' '' 'i: integer;' 'i := 5; CASE i OF 1 => ; ESAC;'
fails 'the assertion does not hold' '' 'i: integer;' 'ASSERT(i = 1);'
fails 'CHR of 300' '' 'i: integer; c: char;' 'i := 300; c := CHR(i);'
fails 'VAL of 2; the values go from 0 to 1' '' 'i: integer; b: boolean;' 'i := 2; b := VAL(boolean, i);'
fails 'local deadlock: AwaitValue of an object of type IntObject' 'IMPORT IntObject;' 'o: IntObject;' 'o$AwaitValue(3);'
fails 'FORK on cpu 7' 'PROCESS p(); BEGIN END;' '' 'FORK p() ON 7;'
fails 'the function variable has no value' 'TYPE F = FUNCTION (integer): integer;' 'f: F; i: integer;' 'i := f(1);'
fails 'illegal alias' 'TYPE A = ARRAY[integer] OF integer; FUNCTION f(a, b: SHARED integer); BEGIN END;' 'a: A[1 .. 2]; i: integer;' 'i := 1; f(a[1], a[i]);'
prints '-3 -1 15 255' '' '' 'WriteLine(-7 / 2, " ", -7 % 3, " ", 17B, " ", 0FFH);'
prints '3 1 2' 'TYPE B = BAG OF integer;' 'a, b: B;' 'a := B:{1, 1, 2}; b := B:{1}; INSERT(5, b); WriteLine(SIZE(a), " ", SIZE(a * b), " ", SIZE(a - b));'
prints '4' 'TYPE S = SET OF string;' 's, t: S;' 's := S:{"a", "b", "a"}; t := S:{"c", "d"}; WriteLine(SIZE(s + t));'
prints '7 8' 'TYPE U = UNION (t: integer) 1 => a: string; 2 => b: integer; END;' 'u, v: U;' 'u := U:{1, "xyz"}; v := u; u := U:{2, 7}; v.a[1] := CHR(56); WriteLine(u.b, " ", v.a[1]);'
prints '1 2' 'TYPE R = NODENAME OF G; TYPE G = GRAPH r: R; NODES b: integer; END;' 'g, h: G;' 'g.r := ADDNODE(g); g!r.b := 1; h := g; h!r.b := 2; WriteLine(g!r.b, " ", h!r.b);'
prints '6 21' 'TYPE A = ARRAY[integer, integer] OF integer;' 'a: A; s: integer;' 'a := A:[[1, 2, 3], [4, 5, 6]]; FOR i IN 1 .. 2 DO FOR j IN LB(a, 2) .. UB(a, 2) DO s +:= a[i, j]; OD; OD; WriteLine(SIZE(a), " ", s);'
prints '9 4' 'IMPORT IntObject;' 'o, p: IntObject;' 'o$assign(4); p := o; o$assign(9); WriteLine(o$value(), " ", p$value());'
prints '10' 'FUNCTION f(n: integer): integer; BEGIN IF n = 0 THEN RETURN 0; FI; RETURN n + f(n - 1); END;' '' 'WriteLine(f(4));'
prints '3' 'FUNCTION f(s: string; n: integer): boolean; BEGIN RETURN SIZE(s) > n; END;' 'n: integer;' 'WHILE f("abc", n) AND (n < 10) DO n +:= 1; OD; WriteLine(n);'
prints 'c b' 'FUNCTION f(s: string): string; BEGIN s[1] := CHR(99); RETURN s; END;' 's, t: string;' 's := "b"; t := f(s); WriteLine(t, " ", s);'
prints '5 1' 'TYPE E = (a, b, c); TYPE A = ARRAY[E] OF integer;' 'x: A[a .. c]; n: integer;' 'x[b] := 5; FOR e IN a .. c DO IF x[e] > 0 THEN n := ORD(e); FI; OD; WriteLine(x[b], " ", n);'
program 'TYPE A = ARRAY[integer, integer] OF longint; FUNCTION f(n: integer; a: OUT A[n .. MAX(integer), n .. MAX(integer)]); BEGIN END;' 'a: A;' 'f(MIN(integer), a);'
run
[ $? = 1 ] && grep -q '^cpu 0: m.imp:2: an array with the bounds -2147483648 .. 2147483647 is too large$' said
ok "an array whose number of elements does not fit 64 bits is told" $?
# A deep recursion ends with a message.
program 'FUNCTION f(n: integer): integer; BEGIN RETURN 1 + f(n + 1); END;' 'i: integer;' 'i := f(1);'
"$build/lang/orcac" -O0 m.imp -o m >said 2>&1 && ./m >said 2>&1
[ -n "$sanitizer" ] || grep -q 'm.imp:2: the recursion is too deep' said
ok "a recursion without end is told" $?
# So is one of operations, also where messages are executed, and an object or an instance that would have no end is rejected.
printf 'OBJECT SPECIFICATION Q; OPERATION a(): integer; OPERATION b(n: integer): integer; END;\n' >Q.spf
printf 'OBJECT IMPLEMENTATION Q; v: integer;\nOPERATION a(): integer; BEGIN RETURN SELF$a() + 1; END;\nOPERATION b(n: integer): integer; BEGIN v +:= n; IF n > 0 THEN v +:= SELF$a(); FI; RETURN v; END;\nEND;\n' >Q.imp
program 'IMPORT Q;' 'q: Q; i: integer;' 'i := q$a();'
run
[ -n "$sanitizer" ] || grep -q '^cpu 0: Q.imp:2: the recursion is too deep' said
ok "an operation that calls itself without end is told" $?
program 'IMPORT Q, IntObject; PROCESS p(q: SHARED Q; o: SHARED IntObject); BEGIN o$inc(); o$AwaitValue(2); END;' 'q: Q; o: IntObject; i: integer;' \
    'Strategy(q, 1, 0); FORK p(q, o) ON 1; o$AwaitValue(1); i := q$b(0); i := q$b(1);'
orcac -O0 m.imp -o m && timeout 60 "$runnel" run --timeout 30 --keep-going -n 2 ./m >said 2>&1
[ -n "$sanitizer" ] || [ "$(grep -c '^cpu [01]: Q.imp:2: the recursion is too deep' said)" = 2 ]
ok "one that all replicas execute is told by each" $?
printf 'OBJECT SPECIFICATION R; END;\n' >R.spf
printf 'OBJECT IMPLEMENTATION R; IMPORT S; TYPE T = RECORD k: integer; s: S; END; TYPE A = ARRAY[integer] OF T;\nnone: A;\na: A[1 .. 2];\nEND;\n' >R.imp
printf 'OBJECT SPECIFICATION S; END;\n' >S.spf
printf 'OBJECT IMPLEMENTATION S; IMPORT R; r: R; END;\n' >S.imp
program 'IMPORT R;' 'r: R;' ';'
orcac -O0 m.imp -o m
[ $? = 1 ] && grep -q '^R.imp:3:1: error: each R would hold another R in a, without end$' said && ! grep -q 'in none' said
ok "an object that would hold itself is rejected" $?
printf 'OBJECT IMPLEMENTATION S; IMPORT R; TYPE A = ARRAY[integer] OF R; a: A; END;\n' >S.imp
orcac -O0 m.imp -o m && ./m >said 2>&1
ok "one that holds itself in an array that begins empty is not" $?
printf 'GENERIC (TYPE T) OBJECT SPECIFICATION X; END GENERIC;\n' >X.spf
printf 'GENERIC OBJECT IMPLEMENTATION X;\nTYPE A = ARRAY[integer] OF T; OBJECT Y = NEW X(A);\nEND GENERIC;\n' >X.imp
program 'OBJECT Z = NEW X(integer);' 'z: Z;' ';'
timeout 60 "$build/lang/orcac" -O0 m.imp -o m >said 2>&1
[ $? = 1 ] && grep -q '^X.imp:2:38: error: generic units make instances of each other' said
ok "instances without end are rejected" $?
# Processes that wait for each other are told with their objects, an element of an array by its index.
program 'IMPORT IntObject; TYPE T = ARRAY[integer] OF IntObject; PROCESS p(t: SHARED T; o: SHARED IntObject); BEGIN t[5]$AwaitValue(1); o$inc(); END;' \
    't: T[4 .. 5]; o: IntObject;' 'FORK p(t, o); o$AwaitValue(1);'
run
[ $? = 1 ] && grep -q '^deadlock: all processes wait for each other$' said &&
    grep -q '^cpu 0: m.imp:2: process p waits in AwaitValue of the object t\[5\] (IntObject)$' said &&
    grep -q '^cpu 0: m.imp:6: process OrcaMain waits in AwaitValue of the object o (IntObject)$' said
ok "a deadlock of all processes is told" $?
exit "$failed"
