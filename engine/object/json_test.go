package object

import (
	"encoding/json"
	"math"
	"testing"
)

// Digests of what encoding/json writes are in the annotations of objects that exist.
func TestWhatADigestIsMadeOfIsWhatEncodingJSONWrites(t *testing.T) {
	t.Parallel()
	texts := []string{"", "a b", `"`, `\`, "<a&b>", "\x00\x1f", "\x7f", "ü", "\u2028", "\xff", "a\xc3", "😀", "~}"}
	data := []any{
		nil, true, false, int64(0), int64(math.MinInt64), 3, 1.5, 1e21, math.Copysign(0, -1), float32(2),
		map[string]any(nil), map[string]any{}, []any(nil), []any{}, map[string]string{"b": "x", "a": "<"}, []string{"x"}, []byte("x"),
	}
	deep := map[string]any{}
	for i, text := range texts {
		data = append(data, text)
		deep[text] = []any{text, map[string]any{"z": text, "a": data[i], text: int64(i)}}
	}
	for _, v := range append(data, deep, map[string]any{"all": data}) {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := AppendJSON(nil, v)
		if err != nil || string(got) != string(want) {
			t.Errorf("%#v: %s, %v; want %s", v, got, err, want)
		}
	}
	for _, v := range []any{math.NaN(), func() {}, map[string]any{"a": []any{math.Inf(1)}}} {
		if got, err := AppendJSON(nil, v); err == nil {
			t.Errorf("%v is written as %s", v, got)
		}
	}
}
