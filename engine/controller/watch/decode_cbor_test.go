package watch

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	kjson "k8s.io/apimachinery/pkg/util/json"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// inCBOR returns an object as an API server writes it in CBOR.
func inCBOR(t testing.TB, object any) []byte {
	t.Helper()
	out, err := direct.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ofJSON returns what a text of JSON says.
func ofJSON(t testing.TB, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := kjson.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// markedWith returns an object that a cache packs, with a value.
func markedWith(value any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "value": value, "metadata": map[string]any{
		"name": "shop", "uid": "uid-1", "annotations": map[string]any{"operetta.dev/owner": "Shop.example.com default/shop"},
	}}
}

// oddValues are what CBOR says in another way than JSON, or more exactly.
var oddValues = map[string]any{
	"integers":        []any{int64(0), int64(-1), int64(23), int64(24), int64(-24), int64(-25), int64(255), int64(256), int64(65536), int64(1) << 32, int64(math.MaxInt64), int64(math.MinInt64)},
	"large integers":  []any{uint64(math.MaxInt64) + 1, uint64(math.MaxUint64)},
	"floats":          []any{0.5, 0.1, -0.25, 1e-300, 1e300, 65504.0, 1e-7, math.SmallestNonzeroFloat64, math.MaxFloat32},
	"floats of none":  []any{1.0, 0.0, math.Copysign(0, -1), -3.0, 1e6, 1e15, 1e18, 1e20, 1e21, -1e22, float64(1 << 53), float64(1<<53) + 2, float64(1 << 62), float64(1 << 63), -float64(1 << 63)},
	"bytes":           map[string]any{"none": []byte{}, "some": []byte("text"), "of no text": []byte{0, 0xff, 0xfe}, "in a list": []any{[]byte{1}, "AQ=="}},
	"texts":           []any{"", "ä€😀", "\x00\u2028<>&", strings.Repeat("x", 300), strings.Repeat("x", 70000)},
	"no text":         map[string]any{"a": "\xff\xfe", "b\xff": "a\xe4b", "c": "\xed\xa0\xbd"},
	"nothing":         []any{nil, map[string]any{}, []any{}, "", false, true, []any{nil, nil}},
	"times":           []any{"2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000001Z"},
	"names":           map[string]any{"": 1, strings.Repeat("n", 23): 1, strings.Repeat("n", 24): 2, strings.Repeat("n", 300): 3},
	"many":            slices.Repeat([]any{"a", int64(1), map[string]any{"a": []any{}}}, 200),
	"nested":          nestedList(500),
	"what is a claim": map[string]any{"~packed": "x", "fieldsV1": map[string]any{"f:a": map[string]any{}}},
}

func nestedList(depth int) any {
	var out any = "in"
	for range depth {
		out = []any{map[string]any{"a": out}}
	}
	return out
}

// checkCBOR compares what is made of CBOR with what client-go makes of the same in JSON.
func checkCBOR(t *testing.T, raw []byte, asJSON string) {
	t.Helper()
	want, err := asClientGo(asJSON)
	if err != nil {
		t.Fatal(err)
	}
	for name, decode := range map[string]decoder{"whole": whole, "packed or whole": packedOrWhole} {
		u, err := decode(raw)
		if err == nil {
			u, err = unpacked(u)
		}
		if err != nil {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		if got := compactAsMaps(u.Object); !reflect.DeepEqual(want, got) {
			t.Errorf("%s: it is\n%.2000v\nand in JSON\n%.2000v", name, got, want)
		}
	}
}

func TestCBORSaysWhatItsJSONSays(t *testing.T) {
	t.Parallel()
	objects := map[string]any{}
	for name, text := range oddJSON {
		objects[name] = ofJSON(t, text)
	}
	for name, value := range oddValues {
		objects["a value: "+name] = markedWith(value)
	}
	for name, object := range objects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			raw := inCBOR(t, object)
			checkCBOR(t, raw, string(text))
			checkCBOR(t, append([]byte(selfDescribed), raw...), string(text))
		})
	}
}

// begins is an object in CBOR up to the value of its last field, which follows. It is one that a cache packs.
func begins(t testing.TB) string {
	t.Helper()
	raw := inCBOR(t, map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": markedWith(nil)["metadata"]})
	return "a4" + hex.EncodeToString(raw[1:]) + "4576616c7565"
}

func TestWhatAnAPIServerDoesNotWriteInCBOR(t *testing.T) {
	t.Parallel()
	const tooDeep = maxCBORDepth
	for name, row := range map[string]struct {
		reason string
		// value is the last field of an object, in hexadecimal digits.
		value string
		want  string
	}{
		"texts as texts":                {"so does each other writer of CBOR", "63616263", `"abc"`},
		"a list without a length":       {"it has an end all the same", "9f0102ff", `[1,2]`},
		"a map without a length":        {"the same", "bf416101ff", `{"a":1}`},
		"nested ones without lengths":   {"the same", "9fbf41619fffffff", `[{"a":[]}]`},
		"a text in parts":               {"the same", "5f41614162ff", `"ab"`},
		"a text of no parts":            {"the same", "5fff", `""`},
		"a name in parts":               {"the same", "a15f4161ff01", `{"a":1}`},
		"a name twice":                  {"as in JSON, the last one counts", "a2416101416102", `{"a":2}`},
		"a longer form of a number":     {"its value counts", "1b0000000000000001", `1`},
		"floats of all lengths":         {"its value counts", "83f93e00fa3fc00000fb3ff8000000000000", `[1.5,1.5,1.5]`},
		"a small float":                 {"the shortest form has a few bits", "82f90001f98001", `[5.960464477539063e-8,-5.960464477539063e-8]`},
		"bytes in other encodings":      {"their tags say so", "83d542fffed642fffed742fffe", `["__4","//4=","FFFE"]`},
		"tags of what CBOR is":          {"that says nothing", "d9d9f7d9d9f701", `1`},
		"a tag of a text":               {"only bytes are encoded", "d66161", `"a"`},
		"a name that is a number":       {"JSON has none", "a10102", ""},
		"a name that is null":           {"JSON has none", "a1f602", ""},
		"a name that is a list":         {"JSON has none", "a1800102", ""},
		"a name that is encoded":        {"nobody needs it", "a1d6416101", ""},
		"a name without a value":        {"it is none", "bf4161ff", ""},
		"a list of a tag":               {"the bytes in it would have another meaning", "d6814161", ""},
		"a large number":                {"it is no number of JSON", "c249010000000000000000", ""},
		"a time":                        {"as a number, it would be no text", "c11a00000000", ""},
		"not a number":                  {"JSON has none", "f97e00", ""},
		"infinite":                      {"JSON has none", "f97c00", ""},
		"undefined":                     {"JSON has none", "f7", ""},
		"another simple value":          {"JSON has none", "e0", ""},
		"a simple value of two bytes":   {"JSON has none", "f814", ""},
		"a break":                       {"nothing began", "ff", ""},
		"a break in a list of a length": {"it is no item", "8201ff", ""},
		"a head of no length":           {"it has no meaning", "1c", ""},
		"a number without an end":       {"it has no meaning", "1f", ""},
		"a text of other parts":         {"they are no texts", "5f4161616101ff", ""},
		"a text of numbers":             {"they are no texts", "5f01ff", ""},
		"a text that goes on":           {"the stream ends", "5a7fffffff41", ""},
		"a text of many bytes":          {"nobody has as many", "5bffffffffffffffff", ""},
		"a list of many items":          {"nobody has as many", "9bffffffffffffffff", ""},
		"a map of many entries":         {"nobody has as many, and twice as many are few", "bb8000000000000000", ""},
		"a list that goes on":           {"the stream ends", "9a7fffffff01", ""},
		"a tag of nothing":              {"the stream ends", "d6", ""},
		"nothing":                       {"the stream ends", "", ""},
		"something behind":              {"it is one object", "0101", ""},
		"much in each other":            {"as much as in JSON", strings.Repeat("81", tooDeep-1) + "01", strings.Repeat("[", tooDeep-1) + "1" + strings.Repeat("]", tooDeep-1)},
		"more in each other":            {"JSON has no more", strings.Repeat("81", tooDeep) + "01", ""},
		"far more in each other":        {"JSON has no more", strings.Repeat("9f", 1000*tooDeep), ""},
		"many tags":                     {"they are in each other, and take no memory", strings.Repeat("d9d9f7", 100*tooDeep) + "01", `1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := hex.DecodeString(begins(t) + row.value)
			if err != nil {
				t.Fatal(err)
			}
			if row.want != "" {
				text, err := json.Marshal(markedWith(json.RawMessage(row.want)))
				if err != nil {
					t.Fatal(err)
				}
				checkCBOR(t, raw, string(text))
				return
			}
			for name, decode := range map[string]decoder{"whole": whole, "packed or whole": packedOrWhole} {
				if u, err := decode(raw); err == nil {
					t.Errorf("%s (%s) is %v", name, row.reason, u.Object)
				}
			}
		})
	}
}

// sameOfCBOR fails unless both decoders say the same of some bytes, and what client-go says of them unless that is an error. It returns whether they
// are an object.
func sameOfCBOR(t *testing.T, raw []byte) bool {
	t.Helper()
	all, err := whole(raw)
	packed, packedErr := packedOrWhole(raw)
	if packedErr == nil {
		packed, packedErr = unpacked(packed)
	}
	if (err == nil) != (packedErr == nil) {
		t.Fatalf("of %x, one has the error %v, and one %v", raw, err, packedErr)
	}
	if err != nil {
		return false
	}
	if got, want := compactAsMaps(packed.Object), compactAsMaps(all.Object); !reflect.DeepEqual(want, got) {
		t.Fatalf("%x packed is\n%v\nand else\n%v", raw, got, want)
	}
	var known map[string]any
	if direct.Unmarshal(raw, &known) != nil {
		return true
	}
	text, err := json.Marshal(known)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `\ufffd`) { // of two names that are no text, JSON has one
		checkCBOR(t, raw, string(text))
	}
	return true
}

func TestChangedCBORSaysTheSameToAllWhoReadIt(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	valid := 0
	for _, name := range slices.Sorted(maps.Keys(oddJSON)) {
		if len(oddJSON[name]) > 4096 {
			continue
		}
		object := inCBOR(t, ofJSON(t, oddJSON[name]))
		for range 400 {
			raw := slices.Clone(object)
			for range 1 + random.IntN(3) {
				raw[random.IntN(len(raw))] = byte(random.IntN(256))
			}
			if isCBOR(raw) && sameOfCBOR(t, raw) {
				valid++
			}
		}
	}
	if valid < 1000 {
		t.Errorf("%d texts are CBOR, which tests little", valid)
	}
}

func FuzzCBOR(f *testing.F) {
	for _, text := range oddJSON {
		if len(text) < 4096 {
			f.Add(inCBOR(f, ofJSON(f, text)))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if isCBOR(raw) {
			sameOfCBOR(t, raw)
		}
	})
}

// A writer of CBOR has the fields of managers in any order, and objects that share them must share their text.
func TestFieldSetsInCBORAreShared(t *testing.T) {
	t.Parallel()
	inOrder, _ := hex.DecodeString("a243663a61a043663a62a1412ea0")
	other, _ := hex.DecodeString("a243663a62a1412ea043663a61a0")
	for name, row := range map[string]struct {
		raw  []byte
		want string
	}{
		"in order":         {inOrder, `{"f:a":{},"f:b":{".":{}}}`},
		"in another order": {other, `{"f:a":{},"f:b":{".":{}}}`},
		"odd ones":         {inCBOR(t, map[string]any{"k:{\"a\":\"<b>\"}": nil, "x": []any{int64(1), 1.5, true, "a\n"}}), `{"x":[1,1.5,true,"a\n"],"k:{\"a\":\"<b>\"}":null}`},
	} {
		for range 2 { // the second time, it is known
			if got, err := fieldSetTexts.of(row.raw); err != nil || got != row.want {
				t.Errorf("%s is %s, error %v", name, got, err)
			}
		}
	}
	large := inCBOR(t, map[string]any{"f:" + strings.Repeat("a", maxTextKept): map[string]any{}})
	if got, err := fieldSetTexts.of(large); err != nil || len(got) < maxTextKept {
		t.Errorf("what is large is %s, error %v", got, err)
	}
	if _, err := fieldSetTexts.of([]byte{0xa1, 0x01, 0x02}); err == nil {
		t.Error("what is none has a text")
	}
}

// eventInCBOR returns an event as an API server writes it, with its fields in either order.
func eventInCBOR(t testing.TB, of string, object any, typeFirst bool) []byte {
	t.Helper()
	kind := append(inCBOR(t, "type"), inCBOR(t, of)...)
	value := append(append(inCBOR(t, "object"), selfDescribed...), inCBOR(t, object)...)
	out := append([]byte(selfDescribed), 0xa2)
	if typeFirst {
		return append(append(out, kind...), value...)
	}
	return append(append(out, value...), kind...)
}

// An API server shuffles the fields of what it writes in CBOR, and a network cuts it anywhere.
func TestEventsInCBORAreReadAsTheyCome(t *testing.T) {
	t.Parallel()
	object := ofJSON(t, deployed(`,"managedFields":[{"fieldsV1":{"f:a":{}}}]`, `,"data":"`+strings.Repeat("x", 2*maxPackedAtOnce)+`"`))
	status := ofJSON(t, refusal(410, "Expired"))
	stream := slices.Concat(eventInCBOR(t, "ADDED", object, true), eventInCBOR(t, "MODIFIED", object, false), eventInCBOR(t, "BOOKMARK", object, false), eventInCBOR(t, "ERROR", status, true))
	want := []string{"ADDED Deployment 7", "MODIFIED Deployment 7", "BOOKMARK Deployment 7 map[note:mine operetta.dev/owner:Shop.example.com default/shop]", "ERROR Expired"}
	for name, from := range map[string]io.Reader{
		"at once": strings.NewReader(string(stream)), "in bytes": iotest.OneByteReader(strings.NewReader(string(stream))), "in halves": iotest.HalfReader(strings.NewReader(string(stream))),
	} {
		d := &eventDecoder{body: io.NopCloser(from), decode: packedOrWhole, note: func(*reader, error) { t.Errorf("%s: it notes an error", name) }}
		for _, want := range want {
			of, object, err := d.Decode()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := describe(watch.Event{Type: of, Object: object}); got != want {
				t.Errorf("%s: it is %s, want %s", name, got, want)
			}
		}
		d.note = func(*reader, error) {}
		if _, _, err := d.Decode(); err != io.EOF { //nolint:errorlint // as the library compares it
			t.Errorf("%s: at the end, it is %v", name, err)
		}
	}
}

func TestTheErrorOfAConnectionIsItselfInCBOR(t *testing.T) {
	t.Parallel()
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	stream := string(eventInCBOR(t, "ADDED", ofJSON(t, deployed("", "")), false))
	for at := range len(stream) + 1 {
		for _, ends := range []io.Reader{iotest.ErrReader(reset), strings.NewReader("")} {
			d := &eventDecoder{body: io.NopCloser(io.MultiReader(strings.NewReader(stream[:at]), ends)), decode: packedOrWhole, note: func(*reader, error) {}}
			_, _, err := d.Decode()
			if at == len(stream) && err == nil {
				_, _, err = d.Decode()
			}
			switch whole := at == 0 || at == len(stream); {
			case err == nil, err == io.EOF && !whole, err == io.ErrUnexpectedEOF && whole: //nolint:errorlint // as the library compares them
				t.Fatalf("after %d of %d bytes, it is %v", at, len(stream), err)
			case !utilnet.IsProbableEOF(err):
				t.Fatalf("after %d of %d bytes, it is %v", at, len(stream), err)
			}
		}
	}
}

func BenchmarkDecodeCBOR(b *testing.B) {
	raw := inCBOR(b, inline.Object(b, written).Object)
	byClientGo := func(raw []byte) (*unstructured.Unstructured, error) {
		u := &unstructured.Unstructured{}
		return u, direct.Unmarshal(raw, &u.Object)
	}
	for name, decode := range map[string]decoder{"by client-go": byClientGo, "whole": whole, "packed as it came": packedOrWhole} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := decode(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWatchEvent compares what an event costs in both syntaxes.
func BenchmarkWatchEvent(b *testing.B) {
	object := inline.Object(b, written).Object
	text, err := json.Marshal(map[string]any{"type": "MODIFIED", "object": object})
	if err != nil {
		b.Fatal(err)
	}
	for name, event := range map[string][]byte{"JSON": text, "CBOR": eventInCBOR(b, "MODIFIED", object, true)} {
		b.Run(fmt.Sprintf("%s of %d bytes", name, len(event)), func(b *testing.B) {
			b.ReportAllocs()
			d := &eventDecoder{body: io.NopCloser(&endless{of: event}), decode: packedOrWhole}
			end := machine.LimitProcessorTime(b, time.Millisecond)
			for b.Loop() {
				if _, _, err := d.Decode(); err != nil {
					b.Fatal(err)
				}
			}
			end()
		})
	}
}

// endless is a stream of the same again and again.
type endless struct {
	of []byte
	at int
}

// Read implements io.Reader.
func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.of[e.at:])
	e.at = (e.at + n) % len(e.of)
	return n, nil
}

// What cannot be read in CBOR is asked for in JSON from then on, and what breaks off is no reason for that.
func TestAStreamThatCannotReadCBORAsksForJSON(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body string
		want bool
	}{
		"what is no JSON":    {"{]", false},
		"garbage":            {"\xd9\xd9\xf7\xa1\x1c", true},
		"no list":            {"\xd9\xd9\xf7\xa1Aa\x01", true},
		"a name of a number": {"\xa1\x01\x02", true},
		"a list that breaks": {"\xd9\xd9\xf7\xa1Eitems\x82\xa1", false},
	} {
		k := &kindStream{decode: whole}
		if got, err := k.readList(strings.NewReader(row.body)); err == nil {
			t.Errorf("%s is %v", name, got)
		}
		if got := k.onlyJSON.Load(); got != row.want {
			t.Errorf("%s: it asks for JSON then: %v", name, got)
		}
	}
	from, _ := streamOf(t, deploymentKind, "", cache.Options{}, says("\xd9\xd9\xf7\xa1\x1c"))
	events, err := from.WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if e := <-events.ResultChan(); e.Type != watch.Error {
		t.Errorf("garbage is the event %v", e)
	}
}
