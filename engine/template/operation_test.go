package template

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/token"
	"github.com/cockroachdb/apd/v3"
	"github.com/google/go-cmp/cmp"
)

// Values that operations are tried with, by kind.
var (
	someTexts = []any{
		"", "a", "abc", "Hello, World", "  x\ty\n ", "é", "héllo wörld", "a,b,,c", "aaa", "-12", "007", "1_000", "0x1f", "9223372036854775807", "9223372036854775808", "+5",
		"<a href=\"x\">&'", "\u2028\u0000\x1b", "\u65e5\u672c\u8a9e", "ǆ ǅ", "YWJj", "!!!", "2024-01-02T03:04:05Z", "1h30m", "a.b.c", "my-service.example.com", "a/b?c=d&e f", "$1", "${1}x", "\\d+",
		"SHA256", "MD5", strings.Repeat("ab", 300), "\ufffd",
	}
	someIntegers = []any{int64(0), int64(1), int64(-1), int64(2), int64(3), int64(7), int64(-7), int64(10), int64(16), int64(36), int64(37), int64(300), int64(math.MaxInt64), int64(math.MinInt64), int64(1 << 32), int64(-3)}
	someScalars  = slices.Concat(someTexts[:12], someIntegers, []any{true, false, nil})
	someBooleans = []any{true, false, "x", int64(1), nil}
	someLists    = []any{
		[]any{}, []any{"a"}, []any{"b", "a", "B", ""}, []any{int64(1), int64(2)}, []any{"a", int64(1)}, []any{true, nil}, []any{[]any{"x"}, []any{"y", int64(1)}}, []any{map[string]any{"a": "b"}},
	}
	someMaps    = []any{map[string]any{}, map[string]any{"a": int64(1)}, map[string]any{"b": map[string]any{"c": "d"}, "a": []any{}}}
	somePattern = []any{"a+", "^[a-z]+$", "(a)(b)?", "\\s", ".", "é"}
	someContent = slices.Concat(someTexts, someMaps[:1])
	nullOnly    = []any{nil}

	someDecimals = decimalsOf("0.0", "0.5", "-0.5", "1.50", "2.0", "-7.25", "1e3", "1e-7", "0.1", "3.3333333333333333333333333333333333", "9223372036854775807.5", "1e400", "-1e-400", "9007199254740993.0", "1.7976931348623157e308")
	someNumbers  = slices.Concat(someIntegers, someDecimals)
	someFactors  = slices.Concat(someNumbers, someTexts[:6], nullOnly, []any{true, int64(1000001)})

	someNumberLists = []any{
		[]any{}, []any{int64(1)}, []any{int64(3), int64(-1), int64(2)}, []any{int64(math.MaxInt64), int64(1)}, []any{int64(math.MinInt64)}, []any{int64(1), int64(2)}, []any{int64(1), "a"}, []any{nil},
		decimalsOf("0.5", "0.25"), decimalsOf("0.5", "0.5"), decimalsOf("1e400", "-0.5"), []any{int64(7), decimalsOf("2.0")[0]}, []any{decimalsOf("7.0")[0], int64(7)}, decimalsOf("1.0"),
	}
)

// decimalsOf returns decimals as they are written.
func decimalsOf(texts ...string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		d, _, err := apd.NewFromString(text)
		if err != nil {
			panic(err)
		}
		out[i] = d
	}
	return out
}

// expressions are how a call of each operation is written, with the values that each argument is
// tried with. A pattern has to be constant, so that its argument is written into the call.
var expressions = map[string]struct {
	expression string
	imports    string
	args       [][]any
	constant   int // the index of an argument that is constant, or less than 0
}{
	"interpolation": {`"\(a)-\(b)"`, "", [][]any{slices.Concat(someScalars, someLists[:1], someDecimals), someTexts[:3]}, -1},
	"+":             {"a + b", "", [][]any{slices.Concat(someScalars, someLists[:2], someDecimals), slices.Concat(someScalars, someLists[:2], someDecimals)}, -1},
	"-":             {"a - b", "", [][]any{slices.Concat(someScalars, someDecimals), slices.Concat(someScalars, someDecimals)}, -1},
	"*":             {"a * b", "", [][]any{someFactors, someFactors}, -1},
	"/":             {"a / b", "", [][]any{slices.Concat(someNumbers, someTexts[:2], nullOnly), someNumbers}, -1},
	"negate":        {"-a", "", [][]any{slices.Concat(someNumbers, someTexts[:2])}, -1},
	"bytes":         {`'\(a)'`, "", [][]any{slices.Concat(someTexts, someIntegers)}, -1},
	"number":        {"a", "", [][]any{slices.Concat(someNumbers, someTexts[:2])}, -1},
	"index":         {"a[b]", "", [][]any{slices.Concat(someLists, someMaps, someTexts[:2]), slices.Concat(someIntegers, someTexts[:3], nullOnly)}, -1},
	"div":           {"div(a, b)", "", [][]any{someIntegers, someIntegers}, -1},
	"mod":           {"mod(a, b)", "", [][]any{someIntegers, someIntegers}, -1},
	"quo":           {"quo(a, b)", "", [][]any{someIntegers, someIntegers}, -1},
	"rem":           {"rem(a, b)", "", [][]any{someIntegers, someIntegers}, -1},
	"==":            {"a == b", "", [][]any{slices.Concat(someScalars, someLists, someMaps), slices.Concat(someScalars, someLists, someMaps)}, -1},
	"!=":            {"a != b", "", [][]any{slices.Concat(someScalars, someLists), slices.Concat(someScalars, someLists)}, -1},
	"<":             {"a < b", "", [][]any{someScalars, someScalars}, -1},
	"<=":            {"a <= b", "", [][]any{someScalars, someScalars}, -1},
	">":             {"a > b", "", [][]any{someScalars, someScalars}, -1},
	">=":            {"a >= b", "", [][]any{someScalars, someScalars}, -1},
	"!":             {"!a", "", [][]any{someBooleans}, -1},
	"&&":            {"a && b", "", [][]any{someBooleans, someBooleans}, -1},
	"||":            {"a || b", "", [][]any{someBooleans, someBooleans}, -1},
	"=~":            {"a =~ b", "", [][]any{slices.Concat(someTexts, someBooleans), somePattern}, 1},
	"!~":            {"a !~ b", "", [][]any{slices.Concat(someTexts, someBooleans), somePattern}, 1},
	"len":           {"len(a)", "", [][]any{slices.Concat(someScalars, someTexts, someLists, someMaps)}, -1},

	"strings.Compare":      {"strings.Compare(a, b)", "strings", [][]any{someScalars, someTexts}, -1},
	"strings.Contains":     {"strings.Contains(a, b)", "strings", [][]any{someTexts, someScalars}, -1},
	"strings.ContainsAny":  {"strings.ContainsAny(a, b)", "strings", [][]any{someTexts, someTexts}, -1},
	"strings.Count":        {"strings.Count(a, b)", "strings", [][]any{someTexts, someTexts}, -1},
	"strings.Fields":       {"strings.Fields(a)", "strings", [][]any{someScalars}, -1},
	"strings.HasPrefix":    {"strings.HasPrefix(a, b)", "strings", [][]any{someTexts, someTexts}, -1},
	"strings.HasSuffix":    {"strings.HasSuffix(a, b)", "strings", [][]any{someTexts, someTexts}, -1},
	"strings.Index":        {"strings.Index(a, b)", "strings", [][]any{someTexts, someTexts}, -1},
	"strings.IndexAny":     {"strings.IndexAny(a, b)", "strings", [][]any{someTexts, someTexts}, -1},
	"strings.Join":         {"strings.Join(a, b)", "strings", [][]any{someLists, someScalars}, -1},
	"strings.LastIndex":    {"strings.LastIndex(a, b)", "strings", [][]any{someTexts, someTexts}, -1},
	"strings.LastIndexAny": {"strings.LastIndexAny(a, b)", "strings", [][]any{someTexts, someTexts}, -1},
	"strings.MaxRunes":     {"strings.MaxRunes(a, b)", "strings", [][]any{someTexts, someIntegers}, -1},
	"strings.MinRunes":     {"strings.MinRunes(a, b)", "strings", [][]any{someTexts, someIntegers}, -1},
	"strings.Repeat":       {"strings.Repeat(a, b)", "strings", [][]any{someTexts[:8], {int64(0), int64(3), int64(-1)}}, -1},
	"strings.Replace":      {"strings.Replace(a, b, c, d)", "strings", [][]any{someTexts[:12], someTexts[:5], someTexts[:3], {int64(-1), int64(0), int64(1), "x"}}, -1},
	"strings.SliceRunes":   {"strings.SliceRunes(a, b, c)", "strings", [][]any{someTexts[:12], someIntegers, someIntegers}, -1},
	"strings.Split":        {"strings.Split(a, b)", "strings", [][]any{someTexts, someTexts[:9]}, -1},
	"strings.SplitAfter":   {"strings.SplitAfter(a, b)", "strings", [][]any{someTexts, someTexts[:9]}, -1},
	"strings.ToCamel":      {"strings.ToCamel(a)", "strings", [][]any{someScalars}, -1},
	"strings.ToLower":      {"strings.ToLower(a)", "strings", [][]any{someTexts}, -1},
	"strings.ToTitle":      {"strings.ToTitle(a)", "strings", [][]any{someTexts}, -1},
	"strings.ToUpper":      {"strings.ToUpper(a)", "strings", [][]any{someTexts}, -1},
	"strings.Trim":         {"strings.Trim(a, b)", "strings", [][]any{someTexts, someTexts}, -1},
	"strings.TrimLeft":     {"strings.TrimLeft(a, b)", "strings", [][]any{someTexts, someTexts}, -1},
	"strings.TrimPrefix":   {"strings.TrimPrefix(a, b)", "strings", [][]any{someTexts, someTexts}, -1},
	"strings.TrimRight":    {"strings.TrimRight(a, b)", "strings", [][]any{someTexts, someTexts}, -1},
	"strings.TrimSpace":    {"strings.TrimSpace(a)", "strings", [][]any{someTexts}, -1},
	"strings.TrimSuffix":   {"strings.TrimSuffix(a, b)", "strings", [][]any{someTexts, someTexts}, -1},

	"strconv.Atoi":         {"strconv.Atoi(a)", "strconv", [][]any{someScalars}, -1},
	"strconv.FormatInt":    {"strconv.FormatInt(a, b)", "strconv", [][]any{someScalars, {int64(2), int64(10), int64(36), int64(62)}}, -1},
	"strconv.FormatBool":   {"strconv.FormatBool(a)", "strconv", [][]any{someScalars}, -1},
	"strconv.ParseBool":    {"strconv.ParseBool(a)", "strconv", [][]any{slices.Concat(someTexts, []any{"true", "F", "1", "TRUE", "tRue"})}, -1},
	"strconv.Unquote":      {"strconv.Unquote(a)", "strconv", [][]any{slices.Concat(someTexts, []any{`"a"`, "'a'", "`a\\`", `"\n\xff"`, `"\u00e9`})}, -1},
	"strconv.QuoteToASCII": {"strconv.QuoteToASCII(a)", "strconv", [][]any{someTexts}, -1},
	"strings.SplitN":       {"strings.SplitN(a, b, c)", "strings", [][]any{someTexts, someTexts[:9], someIntegers}, -1},
	"strings.SplitAfterN":  {"strings.SplitAfterN(a, b, c)", "strings", [][]any{someTexts, someTexts[:9], someIntegers}, -1},
	"list.Avg":             {"list.Avg(a)", "list", [][]any{someNumberLists}, -1},
	"list.Drop":            {"list.Drop(a, b)", "list", [][]any{someLists, someIntegers}, -1},
	"list.IsSortedStrings": {"list.IsSortedStrings(a)", "list", [][]any{someLists}, -1},
	"list.Max":             {"list.Max(a)", "list", [][]any{someNumberLists}, -1},
	"list.Min":             {"list.Min(a)", "list", [][]any{someNumberLists}, -1},
	"list.Product":         {"list.Product(a)", "list", [][]any{someNumberLists}, -1},
	"list.Reverse":         {"list.Reverse(a)", "list", [][]any{someLists}, -1},
	"list.Slice":           {"list.Slice(a, b, c)", "list", [][]any{someLists, someIntegers, someIntegers}, -1},
	"list.Sum":             {"list.Sum(a)", "list", [][]any{someNumberLists}, -1},
	"list.Take":            {"list.Take(a, b)", "list", [][]any{someLists, someIntegers}, -1},
	"list.UniqueItems":     {"a & list.UniqueItems()", "list", [][]any{slices.Concat(someLists, []any{[]any{"a", "a"}, []any{int64(1), int64(1)}})}, -1},
	"math.Abs":             {"math.Abs(a)", "math", [][]any{someNumbers}, -1},
	"math.Ceil":            {"math.Ceil(a)", "math", [][]any{someNumbers}, -1},
	"math.Floor":           {"math.Floor(a)", "math", [][]any{someNumbers}, -1},
	"math.Round":           {"math.Round(a)", "math", [][]any{someNumbers}, -1},
	"math.Trunc":           {"math.Trunc(a)", "math", [][]any{someNumbers}, -1},
	"strconv.Quote":        {"strconv.Quote(a)", "strconv", [][]any{someTexts}, -1},
	"list.Contains":        {"list.Contains(a, b)", "list", [][]any{someLists, slices.Concat(someScalars, someLists)}, -1},
	"list.Concat":          {"list.Concat(a)", "list", [][]any{someLists}, -1},
	"list.MaxItems":        {"a & list.MaxItems(b)", "list", [][]any{someLists, someIntegers}, -1},
	"list.MinItems":        {"a & list.MinItems(b)", "list", [][]any{someLists, someIntegers}, -1},
	"list.SortStrings":     {"list.SortStrings(a)", "list", [][]any{someLists}, -1},
	"struct.MaxFields":     {"a & struct.MaxFields(b)", "struct", [][]any{someMaps, someIntegers}, -1},
	"struct.MinFields":     {"a & struct.MinFields(b)", "struct", [][]any{someMaps, someIntegers}, -1},

	"base64.Decode":     {"base64.Decode(a, b)", "encoding/base64", [][]any{nullOnly, someTexts}, -1},
	"base64.Encode":     {"base64.Encode(a, b)", "encoding/base64", [][]any{{nil, "x"}, someContent}, -1},
	"hex.Encode":        {"hex.Encode(a)", "encoding/hex", [][]any{someContent}, -1},
	"hmac.Sign":         {"hmac.Sign(a, b, c)", "crypto/hmac", [][]any{{"SHA256", "MD5", "x"}, someTexts[:5], someTexts[:5]}, -1},
	"html.Escape":       {"html.Escape(a)", "html", [][]any{someTexts}, -1},
	"md5.Sum":           {"md5.Sum(a)", "crypto/md5", [][]any{someContent}, -1},
	"net.FQDN":          {"net.FQDN(a)", "net", [][]any{someTexts}, -1},
	"net.PathEscape":    {"net.PathEscape(a)", "net", [][]any{someTexts}, -1},
	"net.QueryEscape":   {"net.QueryEscape(a)", "net", [][]any{someTexts}, -1},
	"regexp.Match":      {"regexp.Match(a, b)", "regexp", [][]any{somePattern, someContent}, 0},
	"regexp.QuoteMeta":  {"regexp.QuoteMeta(a)", "regexp", [][]any{someTexts}, -1},
	"regexp.ReplaceAll": {"regexp.ReplaceAll(a, b, c)", "regexp", [][]any{somePattern, someTexts, {"x", "$1", "${1}x", ""}}, 0},
	"sha1.Sum":          {"sha1.Sum(a)", "crypto/sha1", [][]any{someContent}, -1},
	"sha256.Sum256":     {"sha256.Sum256(a)", "crypto/sha256", [][]any{someContent}, -1},
	"sha512.Sum512":     {"sha512.Sum512(a)", "crypto/sha512", [][]any{someContent}, -1},
	"time.Duration":     {"time.Duration(a)", "time", [][]any{someTexts}, -1},
	"time.Time":         {"time.Time(a)", "time", [][]any{someTexts}, -1},
}

// TestEachOperationReturnsWhatCUEDoes calls each operation with some thousands of values, and CUE with
// the same. It may have no answer, but never another one; and where CUE has an error it has none.
func TestEachOperationReturnsWhatCUEDoes(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of, ok := expressions[name]
			if !ok {
				t.Fatal("there is no expression for it in this test")
			}
			ctx := cuecontext.New()
			text := "x: " + of.expression + "\na: _\nb: _\nc: _\nd: _\n"
			if of.imports != "" {
				text = fmt.Sprintf("import %q\n%s", of.imports, text)
			}
			base := ctx.CompileString(text)
			if err := base.Err(); err != nil && name != "index" { // whose operands have to have values
				t.Fatal(err)
			}
			answers := 0
			eachCombination(of.args, func(args []any) {
				answers += compareWithCUE(t, name, of.constant, base, args)
			})
			if answers == 0 {
				t.Error("there was never an answer")
			}
			t.Log(answers, "answers")
		})
	}
}

// eachCombination calls a function with every combination of arguments.
func eachCombination(of [][]any, call func([]any)) {
	args := make([]any, len(of))
	var choose func(int)
	choose = func(i int) {
		if i == len(of) {
			call(args)
			return
		}
		for _, v := range of[i] {
			args[i] = v
			choose(i + 1)
		}
	}
	choose(0)
}

// compareWithCUE compares the answer of an operation with that of CUE, and returns how many there
// were.
func compareWithCUE(t *testing.T, name string, constantAt int, base cue.Value, args []any) int {
	t.Helper()
	names := []string{"a", "b", "c", "d"}
	data, nodes := map[string]any{}, make([]*Node, len(args))
	for i, v := range args {
		data[names[i]] = v
		nodes[i] = Reference(names[i])
		if i == constantAt {
			nodes[i] = Constant(v)
		}
	}
	if name == "interpolation" {
		nodes = []*Node{nodes[0], Constant("-"), nodes[1]}
	}
	n, err := Call(name, nodes...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.Eval(data)
	if err != nil {
		return 0
	}
	v := base.FillPath(cue.Path{}, cuecontext.New().BuildExpr(literalOf(data))).LookupPath(cue.ParsePath("x"))
	want, err := plain(v)
	if name == "number" {
		want, err = renderedByCUE(v)
	}
	if err != nil {
		t.Errorf("%v: it is %v, but CUE says %v", args, got, err)
		return 0
	}
	if strings.HasSuffix(name, "Items") || strings.HasSuffix(name, "Fields") && strings.HasPrefix(name, "struct.") {
		want = true // CUE's value is the list or the struct, which meets the bound
	}
	if diff := cmp.Diff(want, withTexts(got)); diff != "" {
		t.Errorf("%v (-CUE +template):\n%s", args, diff)
	}
	return 1
}

// renderedByCUE returns a number of CUE as an object has it: as package program does.
func renderedByCUE(v cue.Value) (any, error) {
	if v.Kind() == cue.IntKind {
		i, err := v.Int(nil)
		if err != nil || !i.IsInt64() {
			return nil, err
		}
		return i.Int64(), nil
	}
	f, err := v.Float64()
	if err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int64(f), nil
	}
	return f, err
}

// literalOf returns data as CUE's syntax.
func literalOf(data any) ast.Expr {
	switch v := data.(type) {
	case map[string]any:
		s := &ast.StructLit{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			s.Elts = append(s.Elts, &ast.Field{Label: ast.NewString(name), Value: literalOf(v[name])})
		}
		return s
	case []any:
		l := &ast.ListLit{}
		for _, e := range v {
			l.Elts = append(l.Elts, literalOf(e))
		}
		return l
	case nil:
		return ast.NewNull()
	case bool:
		return ast.NewBool(v)
	case string:
		return ast.NewString(v)
	case Decimal:
		text := strings.TrimPrefix(fmt.Sprintf("%e", v), "-")
		if v.Negative {
			return &ast.UnaryExpr{Op: token.SUB, X: ast.NewLit(token.FLOAT, text)}
		}
		return ast.NewLit(token.FLOAT, text)
	}
	text := strings.TrimPrefix(fmt.Sprint(data), "-")
	if strings.HasPrefix(fmt.Sprint(data), "-") {
		return &ast.UnaryExpr{Op: token.SUB, X: ast.NewLit(token.INT, text)}
	}
	return ast.NewLit(token.INT, text)
}

// withTexts returns a value with its decimals as text, of which CUE shows no more.
func withTexts(v any) any {
	switch v := v.(type) {
	case Decimal:
		return "decimal " + v.String()
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = withTexts(e)
		}
		return out
	}
	return v
}

// plain returns what a value of CUE is in Go.
func plain(v cue.Value) (any, error) {
	if err := v.Validate(cue.Concrete(true)); err != nil {
		return nil, err
	}
	switch v.Kind() {
	case cue.IntKind:
		return v.Int64()
	case cue.FloatKind:
		d, err := v.Decimal()
		if err != nil {
			return nil, err
		}
		return "decimal " + d.String(), nil
	case cue.BytesKind:
		return v.Bytes()
	case cue.ListKind:
		out := []any{}
		it, err := v.List()
		for err == nil && it.Next() {
			e, err := plain(it.Value())
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
		return out, err
	}
	var out any
	err := v.Decode(&out)
	return out, err
}
