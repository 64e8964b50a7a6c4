#!/usr/bin/env bash
# The rules of the language, one after another. conform/rules.imp and conform/units.imp check what a right program means, and
# print a line for each rule: on one cpu, on several, and on ranks. What the compiler rejects follows, by the parts of the
# reference: what was expected is named at its place. test_errors.sh has the rules that users meet first, and run-time errors.
# shellcheck disable=SC2016 # $ is Orca's
# shellcheck source=tests/orca/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
cp "$tree"/tests/orca/conform/* . || exit 1
shown='said m.imp'

holds() { # HOW RULES COMMAND...: each line of the output is a rule that holds, and there are so many
    local how=$1 rules=$2
    shift 2
    timeout 60 "$@" >said 2>&1
    ok "$how ends well" $?
    grep '^not ok' said
    [ "$(grep -c '^ok - ' said)" = "$rules" ] && [ "$(wc -l <said)" = "$rules" ]
    ok "$how: $rules rules hold" $?
}
for program in rules units; do
    rules=$(grep -c 'Check("' $program.imp)
    # Five in a loop, and one of two branches.
    [ $program = rules ] || rules=$((rules + 4 - 1))
    compiles $program.imp -O0
    for cpus in 1 3; do holds "$program on $cpus cpus" "$rules" ./$program -cpus $cpus one 'two words'; done
    holds "$program on 3 ranks" "$rules" "$runnel" run -n 3 ./$program one 'two words'
done

printf 'MODULE SPECIFICATION m;\n PROCESS OrcaMain();\nEND;\n' >m.spf
r() { # PATTERN DECLARATIONS LOCALS STATEMENTS: rejected with that sentence, and a mark below its place
    printf 'MODULE IMPLEMENTATION m;\n%s\nPROCESS OrcaMain();\n%s\nBEGIN\n%s\nEND;\nEND;\n' "$2" "$3" "$4" >m.imp
    orcac m.imp -o m
    [ $? = 1 ] && grep -q -- "$1" said && grep -q '^ *^$' said
    ok "rejected: $2 $3 $4" $?
}
PQ='TYPE P = RECORD a, b: integer; END;'
UN='TYPE U = UNION (t: boolean) false => a: integer; true => b: real; END;'
GR='TYPE R = NODENAME OF G; TYPE G = GRAPH r: R; NODES b: integer; END;'
A1='TYPE A = ARRAY[integer] OF integer;'
A2='TYPE A = ARRAY[integer, integer] OF integer;'
FN='TYPE F = FUNCTION (integer): integer;'
# Lexical rules.
r 'neither begins nor ends' '' 'a_: integer;' ';'
r 'one character between two' '' 'c: char;' "c := '';"
r 'one character between two' '' 'c: char;' "c := 'ab';"
r 'but here is WHILE' '' 'WHILE: integer;' ';'
r 'here is the name E' '' 'r: real;' 'r := 1.0E;'
r 'larger than the largest longint' '' 'i: integer;' 'i := 99999999999999999999;'
r '@ has no meaning' '' 'i: integer;' 'i := 1 @ 2;'
# Scopes.
r 'U is not declared here; a type' 'TYPE T = U; TYPE U = integer;' '' ';'
r 'T is not declared here; a type' 'TYPE T = RECORD a: T; END;' '' ';'
r 'a is declared twice' 'FUNCTION f(a: integer); a: real; BEGIN END;' '' ';'
r 'i is not declared here' '' '' 'FOR i IN 1 .. 2 DO OD; i := 1;'
r 'a variable was expected to be assigned to' 'CONST c = 1;' '' 'c := 2;'
# Types.
r 'an index type was expected' 'TYPE A = ARRAY[real] OF integer;' '' ';'
r 'bounds for 1 dimensions were expected' "$A1" 'a: A[1 .. 2, 1 .. 2];' ';'
r 'bounds for 2 dimensions were expected' "$A2" 'a: A[1 .. 2];' ';'
r 'n is none of them' "$A1" 'n: integer; a: A[1 .. n];' ';'
r 'the index is of type real' "$A1" 'a: A[1 .. 2];' 'a[1.0] := 1;'
r '2 indices were expected' "$A2" 'a: A;' 'a[1][1] := 1;'
r 'the tag of a union cannot be changed alone' "$UN" 'u: U;' 'u.t := true;'
r 'have the same tag' 'TYPE U = UNION (t: boolean) false => a: integer; false => b: real; END;' '' ';'
r 'the alternative b is of type integer' "$UN" 'u: U;' 'u := U:{true, 1};'
r 'the field b of P has no value' "$PQ" 'p: P;' 'p := P:{1};'
r 'more values than P has fields' "$PQ" 'p: P;' 'p := P:{1, 2, 3};'
r 'of type NODENAME OF H, but R' "$GR TYPE H = GRAPH x: integer; NODES c: integer; END;" 'h: H; r: R;' 'r := ADDNODE(h);'
r 'integer is no graph' 'TYPE R = NODENAME OF integer;' '' ';'
r 'IntObject cannot be compared' 'IMPORT IntObject;' 'o, p: IntObject;' 'ASSERT(o = p);'
r 'F cannot be compared' "$FN" 'f, g: F;' 'ASSERT(f = g);'
r 'a FUNCTION type, but F' "$FN FUNCTION g(r: real): integer; BEGIN RETURN 1; END;" 'f: F;' 'f := g;'
r 'elements of sets and bags need equality' "$GR TYPE S = SET OF G;" '' ';'
r 'of type T, but S' 'TYPE S = SET OF integer; TYPE T = SET OF integer;' 's: S; t: T;' 's := t;'
r 'of type Row of .*RowCollect.spf:2, but Row of m.imp:2' 'IMPORT RowCollection; TYPE Row = ARRAY[integer] OF integer;' 'c: RowCollection; x: Row;' 'x := c$AwaitRow(1);'
# Conversions and operators.
r 'of type real, but integer was expected (use TRUNC)' '' 'i: integer; r: real;' 'i := r;'
r 'use FLOAT or TRUNC' '' 'i: integer; r: real;' 'r := r + i;'
r 'of type char, but string' '' 'c: char; s: string;' 's := c;'
r 'of type integer, but boolean' '' 'b: boolean;' 'b := 1;'
r 'of type NIL, but integer' '' 'i: integer;' 'i := NIL;'
r 'comparisons have no order among themselves' '' 'b: boolean;' 'b := 1 < 2 < 3;'
r 'string has no order' '' 's, t: string;' 'ASSERT(s < t);'
r '% has no operands of type real' '' 'r: real;' 'r := r % 2.0;'
r '& has no operands of type real' '' 'r: real;' 'r := r & r;'
r 'the left operand of AND is of type integer' '' 'i: integer;' 'i := i AND i;'
r 'the operand of NOT' '' 'b: boolean;' 'b := NOT 1;'
r 'the element is of type real' 'TYPE S = SET OF integer;' 's: S;' 'ASSERT(1.0 IN s);'
# Parameters and results.
r 'to take the OUT parameter' 'FUNCTION f(o: OUT integer); BEGIN END;' '' 'f(1);'
r 'to be the SHARED argument' 'FUNCTION f(o: SHARED integer); BEGIN END;' '' 'f(1 + 2);'
r 'o holds an object and has to be SHARED' 'IMPORT IntObject; FUNCTION f(o: OUT IntObject); BEGIN END;' '' ';'
r 'but i is of type integer' 'PROCESS p(i: SHARED integer); BEGIN END;' '' ';'
r 'a process has no OUT parameters' 'PROCESS p(i: OUT integer); BEGIN END;' '' ';'
r 'f has no result, so' 'FUNCTION f(); BEGIN END;' 'i: integer;' 'i := f();'
r 'an argument for a of f is missing' 'FUNCTION f(a: integer); BEGIN END;' '' 'f();'
r 'f has only 1 parameter' 'FUNCTION f(a: integer); BEGIN END;' '' 'f(1, 2);'
r 'which was expected after RETURN' 'FUNCTION f(): integer; BEGIN RETURN; END;' '' ';'
r 'f has no result to return' 'FUNCTION f(); BEGIN RETURN 1; END;' '' ';'
# Statements and processes.
r 'the condition is of type integer' '' '' 'IF 1 THEN FI;'
r 'the condition is of type integer' '' '' 'WHILE 1 DO OD;'
r 'a range goes over integers or an enumeration' '' '' 'FOR i IN 1.0 .. 2.0 DO OD;'
r 'the label is of type char' '' 'i: integer;' "CASE i OF 'a' => ; ESAC;"
r 'a label has to be a constant' '' 'i, j: integer;' 'CASE i OF j => ; ESAC;'
r 'only a process may fork' 'PROCESS p(); BEGIN END; FUNCTION f(); BEGIN FORK p(); END;' '' ';'
r 'the cpu is of type real' 'PROCESS p(); BEGIN END;' '' 'FORK p() ON 1.0;'
r 'p is a process; FORK starts it' 'PROCESS p(); BEGIN END;' '' 'p();'
r 'the argument for i is of type real' 'PROCESS p(i: integer); BEGIN END;' '' 'FORK p(1.0);'
# Built-in functions and objects.
r 'not a value of type boolean' '' 'b: boolean;' 'Write(b);'
r 'a value of an enumeration was expected' '' 'i: integer;' 'i := ORD(1.0);'
r 'a real was expected' '' 'i: integer;' 'i := TRUNC(1);'
r 'real or enumeration type was expected' '' 'i: integer;' 'i := MAX(string);'
r 'a graph was expected' '' 'i: integer;' 'DELETENODE(i, i);'
r 'A has 1 dimension' "$A1" 'a: A; d: integer;' 'd := LB(a, 2);'
r 'an array, a set or a bag was expected' '' 'i: integer;' 'i := SIZE(i);'
r 'Strategy has 3 arguments' 'IMPORT IntObject;' 'o: IntObject;' 'Strategy(o, 1);'
r 'has no operation nothing' 'IMPORT IntObject;' 'o: IntObject;' 'o$nothing();'
r 'the result of value cannot be ignored' 'IMPORT IntObject;' 'o: IntObject;' 'o$value();'
r 'assign has no result' 'IMPORT IntObject;' 'o: IntObject; i: integer;' 'i := o$assign(1);'
r 'not a value of type integer' '' 'i: integer;' 'i$x();'
exit "$failed"
