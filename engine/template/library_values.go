package template

import (
	"encoding/base64"
	"math"
	"math/big"
	"slices"

	"cuelang.org/go/pkg/crypto/hmac"
	"cuelang.org/go/pkg/strconv"
)

func formatInt(args []any) (any, error) {
	n, isInt := args[0].(int64)
	base, isCount := count(args[1])
	if !isInt || !isCount || base < 2 || base > big.MaxBase {
		return nil, ErrFallback
	}
	return strconv.FormatInt(big.NewInt(n), base), nil
}

// listContains asks whether a list of scalars has one that is the same.
func listContains(args []any) (any, error) {
	elements, ok := args[0].([]any)
	if !ok || !isScalar(args[1]) {
		return nil, ErrFallback
	}
	found := false
	for _, e := range elements {
		if !isScalar(e) {
			return nil, ErrFallback
		}
		found = found || e == args[1]
	}
	return found, nil
}

// isScalar reports whether a value is the same as another one if Go says so.
func isScalar(v any) bool {
	switch v.(type) {
	case nil, bool, int64, string:
		return true
	}
	return false
}

func concat(lists []any) any {
	out := []any{}
	for _, l := range lists {
		elements, ok := l.([]any)
		if !ok {
			return nil
		}
		out = append(out, elements...)
	}
	return out
}

// counted is a bound on how many elements or fields there are. Where it is not met CUE has an
// error that says what there are.
func counted(is func(have, n int64) bool) func([]any) (any, error) {
	return func(args []any) (any, error) {
		n, isCount := count(args[1])
		size, err := length(args[:1])
		have, isSize := size.(int64)
		if _, isText := args[0].(string); err != nil || !isSize || !isCount || isText {
			return nil, ErrFallback
		}
		if is(have, int64(n)) {
			return true, nil
		}
		return nil, ErrFallback
	}
}

// splitN is a function that splits a text into some number of parts at most.
func splitN(of func(s, separator string, n int) []string) func([]any) (any, error) {
	return func(args []any) (any, error) {
		texts, ok := textsIn(args[:2])
		n, isCount := count(args[2])
		if !ok || !isCount {
			return nil, ErrFallback
		}
		return listOf(of(texts[0], texts[1], n)), nil
	}
}

func isSortedStrings(args []any) (any, error) {
	texts, ok := textsIn(args[0])
	if !ok {
		return nil, ErrFallback
	}
	return slices.IsSorted(texts), nil
}

// uniqueItems is a bound: CUE names the elements that are the same where it is not met.
func uniqueItems(elements []any) any {
	seen := make(map[any]bool, len(elements))
	for _, e := range elements {
		if !isScalar(e) || seen[e] {
			return nil
		}
		seen[e] = true
	}
	return true
}

// part returns the elements of a list from one index to another one. An index beyond the end stands for the end, if it may.
func part(of, from, to any, mayExceed bool) (any, error) {
	elements, isList := of.([]any)
	begin, isIndex := count(from)
	end, areIndices := count(to)
	if mayExceed {
		begin, end = min(begin, len(elements)), min(end, len(elements))
	}
	if !isList || !isIndex || !areIndices || begin < 0 || begin > end || end > len(elements) {
		return nil, ErrFallback
	}
	return slices.Clone(elements[begin:end]), nil
}

func take(args []any) (any, error)  { return part(args[0], int64(0), args[1], true) }
func drop(args []any) (any, error)  { return part(args[0], args[1], int64(math.MaxInt32), true) }
func slice(args []any) (any, error) { return part(args[0], args[1], args[2], false) }

func reverse(elements []any) any {
	out := slices.Clone(elements)
	slices.Reverse(out)
	return out
}

func sortStrings(args []any) (any, error) {
	texts, ok := textsIn(args[0])
	if !ok {
		return nil, ErrFallback
	}
	slices.Sort(texts)
	return listOf(texts), nil
}

// base64Encode takes the encoding as well, which can only be null.
func base64Encode(args []any) (any, error) {
	b, ok := bytesOf(args[1])
	if args[0] != nil || !ok {
		return nil, ErrFallback
	}
	return base64.StdEncoding.EncodeToString(b), nil
}

func base64Decode(args []any) (any, error) {
	s, ok := args[1].(string)
	if args[0] != nil || !ok {
		return nil, ErrFallback
	}
	out, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, ErrFallback
	}
	return out, nil
}

func sign(args []any) (any, error) {
	name, isText := args[0].(string)
	key, isKey := bytesOf(args[1])
	data, isData := bytesOf(args[2])
	if !isText || !isKey || !isData {
		return nil, ErrFallback
	}
	out, err := hmac.Sign(name, key, data)
	if err != nil {
		return nil, ErrFallback
	}
	return out, nil
}

func regexpMatch(args []*Node) (func([]any) (any, error), error) {
	pattern, err := constantPattern(args[0])
	if err != nil {
		return nil, err
	}
	return func(args []any) (any, error) {
		s, ok := args[1].(string)
		if !ok {
			return nil, ErrFallback
		}
		return pattern.MatchString(s), nil
	}, nil
}

func regexpReplaceAll(args []*Node) (func([]any) (any, error), error) {
	pattern, err := constantPattern(args[0])
	if err != nil {
		return nil, err
	}
	return func(args []any) (any, error) {
		texts, ok := textsIn(args[1:])
		if !ok || (len(texts[0])+1)*(len(texts[0])+len(texts[1])+1) > maxText {
			return nil, ErrFallback
		}
		return pattern.ReplaceAllString(texts[0], texts[1]), nil
	}, nil
}
