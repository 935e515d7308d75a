package template

import (
	"maps"
	gomath "math"
	gostrings "strings"

	"cuelang.org/go/pkg/crypto/md5"
	"cuelang.org/go/pkg/crypto/sha1"
	"cuelang.org/go/pkg/crypto/sha256"
	"cuelang.org/go/pkg/crypto/sha512"
	"cuelang.org/go/pkg/encoding/hex"
	"cuelang.org/go/pkg/html"
	cuelist "cuelang.org/go/pkg/list"
	"cuelang.org/go/pkg/math"
	"cuelang.org/go/pkg/net"
	"cuelang.org/go/pkg/regexp"
	"cuelang.org/go/pkg/strconv"
	"cuelang.org/go/pkg/strings"
	"cuelang.org/go/pkg/time"
)

// operations are the operators and the functions of CUE's standard library that there is an
// answer for. The functions are CUE's own wherever they take plain Go values.
var operations = func() map[string]*operation {
	all := maps.Clone(operators)
	maps.Copy(all, library)
	return all
}()

var library = map[string]*operation{
	"strings.Compare":      texts(func(a, b string) any { return int64(strings.Compare(a, b)) }),
	"strings.Contains":     texts(func(a, b string) any { return strings.Contains(a, b) }),
	"strings.ContainsAny":  texts(func(a, b string) any { return strings.ContainsAny(a, b) }),
	"strings.Count":        texts(func(a, b string) any { return int64(strings.Count(a, b)) }),
	"strings.Fields":       unary(func(s string) any { return listOf(strings.Fields(s)) }),
	"strings.HasPrefix":    texts(func(a, b string) any { return strings.HasPrefix(a, b) }),
	"strings.HasSuffix":    texts(func(a, b string) any { return strings.HasSuffix(a, b) }),
	"strings.Index":        texts(func(a, b string) any { return int64(strings.Index(a, b)) }),
	"strings.IndexAny":     texts(func(a, b string) any { return int64(strings.IndexAny(a, b)) }),
	"strings.Join":         {arity: 2, eval: join},
	"strings.LastIndex":    texts(func(a, b string) any { return int64(strings.LastIndex(a, b)) }),
	"strings.LastIndexAny": texts(func(a, b string) any { return int64(strings.LastIndexAny(a, b)) }),
	"strings.MaxRunes":     textAndCount(func(s string, n int) (any, error) { return strings.MaxRunes(s, n), nil }),
	"strings.MinRunes":     textAndCount(func(s string, n int) (any, error) { return strings.MinRunes(s, n), nil }),
	"strings.Repeat":       textAndCount(repeat),
	"strings.Replace":      {arity: 4, eval: replace},
	"strings.SliceRunes":   {arity: 3, eval: sliceRunes},
	"strings.Split":        texts(func(a, b string) any { return listOf(strings.Split(a, b)) }),
	"strings.SplitAfter":   texts(func(a, b string) any { return listOf(strings.SplitAfter(a, b)) }),
	"strings.ToCamel":      unary(func(s string) any { return strings.ToCamel(s) }),
	"strings.ToLower":      unary(func(s string) any { return strings.ToLower(s) }),
	"strings.ToTitle":      unary(func(s string) any { return strings.ToTitle(s) }),
	"strings.ToUpper":      unary(func(s string) any { return strings.ToUpper(s) }),
	"strings.Trim":         texts(func(a, b string) any { return strings.Trim(a, b) }),
	"strings.TrimLeft":     texts(func(a, b string) any { return strings.TrimLeft(a, b) }),
	"strings.TrimPrefix":   texts(func(a, b string) any { return strings.TrimPrefix(a, b) }),
	"strings.TrimRight":    texts(func(a, b string) any { return strings.TrimRight(a, b) }),
	"strings.TrimSpace":    unary(func(s string) any { return strings.TrimSpace(s) }),
	"strings.TrimSuffix":   texts(func(a, b string) any { return strings.TrimSuffix(a, b) }),

	"strings.SplitN":      {arity: 3, eval: splitN(strings.SplitN)},
	"strings.SplitAfterN": {arity: 3, eval: splitN(strings.SplitAfterN)},

	"strconv.Atoi":         unary(integerOf),
	"strconv.FormatBool":   unary(func(b bool) any { return strconv.FormatBool(b) }),
	"strconv.ParseBool":    unary(func(s string) any { return ifNoError(strconv.ParseBool(s)) }),
	"strconv.Unquote":      unary(func(s string) any { return ifNoError(strconv.Unquote(s)) }),
	"strconv.QuoteToASCII": unary(func(s string) any { return strconv.QuoteToASCII(s) }),
	"strconv.FormatInt":    {arity: 2, eval: formatInt},
	"strconv.Quote":        unary(func(s string) any { return strconv.Quote(s) }),

	"list.Avg":             aggregate(cuelist.Avg),
	"list.Contains":        {arity: 2, eval: listContains},
	"list.Drop":            {arity: 2, eval: drop},
	"list.IsSortedStrings": {arity: 1, eval: isSortedStrings},
	"list.Max":             aggregate(cuelist.Max),
	"list.Min":             aggregate(cuelist.Min),
	"list.Product":         aggregate(cuelist.Product),
	"list.Reverse":         unary(reverse),
	"list.Slice":           {arity: 3, eval: slice},
	"list.Sum":             aggregate(cuelist.Sum),
	"list.Take":            {arity: 2, eval: take},
	"list.UniqueItems":     unary(uniqueItems),
	"list.Concat":          unary(concat),
	"list.MaxItems":        {arity: 2, eval: counted(func(have, n int64) bool { return have <= n })},
	"list.MinItems":        {arity: 2, eval: counted(func(have, n int64) bool { return have >= n })},
	"list.SortStrings":     {arity: 1, eval: sortStrings},
	"struct.MaxFields":     {arity: 2, eval: counted(func(have, n int64) bool { return have <= n })},
	"struct.MinFields":     {arity: 2, eval: counted(func(have, n int64) bool { return have >= n })},

	"base64.Decode":     {arity: 2, eval: base64Decode},
	"base64.Encode":     {arity: 2, eval: base64Encode},
	"hex.Encode":        content(func(b []byte) any { return hex.Encode(b) }),
	"hmac.Sign":         {arity: 3, eval: sign},
	"html.Escape":       unary(func(s string) any { return html.Escape(s) }),
	"math.Abs":          {arity: 1, eval: absolute},
	"math.Ceil":         rounded(math.Ceil),
	"math.Floor":        rounded(math.Floor),
	"math.Round":        rounded(math.Round),
	"math.Trunc":        rounded(math.Trunc),
	"md5.Sum":           content(func(b []byte) any { return md5.Sum(b) }),
	"net.FQDN":          unary(func(s string) any { return net.FQDN(s) }),
	"net.PathEscape":    unary(func(s string) any { return net.PathEscape(s) }),
	"net.QueryEscape":   unary(func(s string) any { return net.QueryEscape(s) }),
	"regexp.Match":      {arity: 2, prepare: regexpMatch},
	"regexp.QuoteMeta":  unary(func(s string) any { return regexp.QuoteMeta(s) }),
	"regexp.ReplaceAll": {arity: 3, prepare: regexpReplaceAll},
	"sha1.Sum":          content(func(b []byte) any { return sha1.Sum(b) }),
	"sha256.Sum256":     content(func(b []byte) any { return sha256.Sum256(b) }),
	"sha512.Sum512":     content(func(b []byte) any { return sha512.Sum512(b) }),
	"time.Duration":     unary(func(s string) any { return trueIf(time.Duration(s)) }),
	"time.Time":         unary(func(s string) any { return trueIf(time.Time(s)) }),
}

// maxText is how long a text that an operation makes may be, in bytes: of a short one and a number, it can
// make any length.
const maxText = 1 << 20

// maxRepeats is how often CUE v0.17.1 repeats a text: adt.MaxRepeatCount.
const maxRepeats = 1_000_000

// unary is an operation on one value of a type. What returns nil has no answer.
func unary[T any](of func(T) any) *operation {
	return &operation{arity: 1, eval: func(args []any) (any, error) {
		if v, ok := args[0].(T); ok {
			if out := of(v); out != nil {
				return out, nil
			}
		}
		return nil, ErrFallback
	}}
}

// texts is an operation on two texts.
func texts(of func(a, b string) any) *operation {
	return &operation{arity: 2, eval: func(args []any) (any, error) {
		a, isText := args[0].(string)
		b, areTexts := args[1].(string)
		if !isText || !areTexts {
			return nil, ErrFallback
		}
		return of(a, b), nil
	}}
}

// textAndCount is an operation on a text and a small number.
func textAndCount(of func(s string, n int) (any, error)) *operation {
	return &operation{arity: 2, eval: func(args []any) (any, error) {
		s, isText := args[0].(string)
		n, isCount := count(args[1])
		if !isText || !isCount {
			return nil, ErrFallback
		}
		return of(s, n)
	}}
}

// content is an operation on bytes, which a text is as well.
func content(of func([]byte) any) *operation {
	return &operation{arity: 1, eval: func(args []any) (any, error) {
		b, ok := bytesOf(args[0])
		if !ok {
			return nil, ErrFallback
		}
		return of(b), nil
	}}
}

// bytesOf returns the bytes of bytes or of a text.
func bytesOf(v any) ([]byte, bool) {
	switch v := v.(type) {
	case []byte:
		return v, true
	case string:
		return []byte(v), true
	}
	return nil, false
}

// count returns a number that is no larger than any count of something.
func count(v any) (int, bool) {
	n, ok := v.(int64)
	return int(n), ok && n >= gomath.MinInt32 && n <= gomath.MaxInt32
}

// listOf returns texts as a list.
func listOf(texts []string) any {
	out := make([]any, len(texts))
	for i, s := range texts {
		out[i] = s
	}
	return out
}

// textsIn returns the texts of a list that has nothing else.
func textsIn(v any) ([]string, bool) {
	elements, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, len(elements))
	for i, e := range elements {
		if out[i], ok = e.(string); !ok {
			return nil, false
		}
	}
	return out, true
}

// ifNoError returns a value, or nil where CUE has an error.
func ifNoError[T any](v T, err error) any {
	if err != nil {
		return nil
	}
	return v
}

// trueIf returns true, or nil where CUE has an error.
func trueIf(ok bool, err error) any {
	if !ok || err != nil {
		return nil
	}
	return true
}

func join(args []any) (any, error) {
	elements, ok := textsIn(args[0])
	separator, isText := args[1].(string)
	if !ok || !isText {
		return nil, ErrFallback
	}
	return strings.Join(elements, separator), nil
}

func repeat(s string, n int) (any, error) {
	if n < 0 || n > maxRepeats || len(s)*n > maxText {
		return nil, ErrFallback
	}
	return gostrings.Repeat(s, n), nil
}

func replace(args []any) (any, error) {
	texts, ok := textsIn(args[:3])
	n, isCount := count(args[3])
	if !ok || !isCount || (len(texts[0])+1)*(len(texts[2])+1) > maxText {
		return nil, ErrFallback
	}
	return strings.Replace(texts[0], texts[1], texts[2], n), nil
}

func sliceRunes(args []any) (any, error) {
	s, isText := args[0].(string)
	begin, isCount := count(args[1])
	end, areCounts := count(args[2])
	if !isText || !isCount || !areCounts {
		return nil, ErrFallback
	}
	out, err := strings.SliceRunes(s, begin, end)
	if err != nil {
		return nil, ErrFallback
	}
	return out, nil
}

// integerOf returns the number that a text is, or nil.
func integerOf(s string) any {
	n, err := strconv.Atoi(s)
	if err != nil || !n.IsInt64() {
		return nil
	}
	return n.Int64()
}
