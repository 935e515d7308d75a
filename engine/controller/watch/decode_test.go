package watch

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/ownership"
	"operetta.dev/test/inline"
)

// deployed is JSON as an API server writes it, with a part of its metadata and a field beside.
func deployed(metadata, beside string) string {
	return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"shop","namespace":"default","uid":"uid-1","resourceVersion":"7",` +
		`"annotations":{"operetta.dev/owner":"Shop.example.com default/shop","note":"mine"}` + metadata + `}` + beside + `}`
}

// oddJSON is what a decoder may read in another way than the one of client-go.
var oddJSON = map[string]string{
	"numbers":                   deployed("", `,"n":[0,-0,1,-1,1.0,0.1,1e3,1E-3,9223372036854775807,-9223372036854775808,9223372036854775808,18446744073709551616,123456789012345678901234567890]`),
	"what is nothing":           deployed("", `,"a":null,"b":{},"c":[],"d":"","e":[null,{},[]],"f":false`),
	"escapes":                   deployed("", `,"a":"\u0041\n\t\"\\\/\ud83d\ude00\u2028","\u006b\"":"x","<&>":"<&>"`),
	"half of a surrogate pair":  deployed("", `,"a":"\ud83d","\udead":"x"`),
	"bytes that are no text":    deployed("", ",\"a\":\"\xff\xfe\",\"\xff\":1"),
	"a field twice":             deployed("", `,"a":1,"a":{"b":2}`),
	"space":                     strings.ReplaceAll(deployed("", `,"a":[1,2]`), ",", " ,\r\n\t"),
	"names like others":         deployed("", `,"f:a":1,"k:{\"a\":1}":{"f:a":{}},"abc":{"abd":{"abc":1}}`),
	"long names":                deployed("", `,"`+strings.Repeat("x", 300)+`":{"`+strings.Repeat("y", 63)+`":1}`),
	"names of one hash":         deployed("", `,"Aa":{"BB":{"Aa":1}},"AaAa":1,"BBBB":2,"AaBB":3`),
	"managers":                  deployed(`,"managedFields":[{"manager":"a","operation":"Apply","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"k:{\"name\":\"<a>\"}":{".":{},"f:b":{}}}}},{"manager":"b","subresource":"status","fieldsV1":{}},{"manager":"c"}]`, ""),
	"managers that are none":    deployed(`,"managedFields":[1,"a",null,[]]`, ""),
	"managers of another form":  deployed(`,"managedFields":{"fieldsV1":{"f:a":{}}}`, ""),
	"fields of another form":    deployed(`,"managedFields":[{"fieldsV1":"text"},{"fieldsV1":null},{"fieldsV1":[1]}]`, ""),
	"fields of managers twice":  deployed(`,"managedFields":[{"fieldsV1":{"f:a":{}},"fieldsV1":{"f:b":{}}}]`, ""),
	"managers twice":            deployed(`,"managedFields":[{"fieldsV1":{"f:a":{}}},{"fieldsV1":{"f:b":{}}}],"managedFields":[{"fieldsV1":{"f:c":{}}}]`, ""),
	"managers in another order": deployed(`,"labels":{"a":"b"},"managedFields":[{"fieldsV1":{"f:a":{}},"manager":"a"}],"finalizers":["x"],"deletionTimestamp":"2026-01-01T00:00:00Z"`, ""),
	"marks that are no texts":   `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"operetta.dev/owner":{"a":1},"operetta.dev/owner-uid":[1]}}}`,
	"annotations that are none": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":[1],"uid":1,"finalizers":"x"}}`,
	"metadata twice":            `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[{"fieldsV1":{"f:a":{}}}]},"metadata":{"name":"b"}}`,
	"metadata that is none":     `{"apiVersion":"v1","kind":"ConfigMap","metadata":[]}`,
	"a kind that is none":       `{"apiVersion":1,"kind":null,"metadata":{"name":"a"}}`,
	"a marked kind of none":     strings.ReplaceAll(deployed("", ""), `"apps/v1"`, `1`),
	"what has the field names":  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"managedFields":"x","fieldsV1":"y"},"fieldsV1":{"a":1}}`,
	"what nobody marked":        `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`,
	"a Job":                     strings.ReplaceAll(strings.ReplaceAll(deployed("", ""), "apps/v1", "batch/v1"), "Deployment", "Job"),
	"what is large":             deployed("", `,"data":"`+strings.Repeat("x", maxPackedAtOnce)+`"`),
	"lists of next to nothing":  deployed("", `,"data":[`+strings.Repeat("1,", 5000)+`1]`),
	"deep nesting":              deployed("", `,"data":`+strings.Repeat(`{"a":[`, 500)+strings.Repeat(`]}`, 500)),
	"almost nothing":            `{}`,
	"what claims to be packed":  deployed("", `,"~packed":"{\"kind\":\"Secret\"}","~fieldSets":["x"],"~stripped":true`),
	"what says so and is large": deployed("", `,"~packed":"{}","data":"`+strings.Repeat("x", maxPackedAtOnce)+`"`),
}

// asClientGo returns what the decoder of client-go makes of JSON, with managed fields as a cache has them.
func asClientGo(raw string) (map[string]any, error) {
	out := map[string]any{}
	if err := kjson.Unmarshal([]byte(raw), &out); err != nil {
		return nil, err
	}
	for _, claimed := range cacheFields {
		delete(out, claimed)
	}
	return compactAsMaps(out), nil
}

// compactAsMaps returns an object with the fields of its managers as maps, since the order of their JSON is free.
func compactAsMaps(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	managers, _ := meta["managedFields"].([]any)
	for _, m := range managers {
		entry, _ := m.(map[string]any)
		if text, is := entry["fieldsV1"].(string); is && strings.HasPrefix(text, "{") {
			var fields map[string]any
			if kjson.Unmarshal([]byte(text), &fields) == nil {
				entry["fieldsV1"] = fields
			}
		}
	}
	return object
}

// checkDecoders compares what the decoders make of JSON with client-go.
func checkDecoders(t *testing.T, raw string) {
	t.Helper()
	want, wantErr := asClientGo(raw)
	for name, decode := range map[string]decoder{"whole": whole, "packed or whole": packedOrWhole} {
		u, err := decode([]byte(raw))
		if err == nil {
			u, err = unpacked(u)
		}
		if (err == nil) != (wantErr == nil) {
			t.Errorf("%s: error %v, and client-go has %v", name, err, wantErr)
		}
		if err != nil || wantErr != nil {
			continue
		}
		if got := compactAsMaps(u.Object); !reflect.DeepEqual(want, got) { // cmp takes twice as long for each list around another
			t.Errorf("%s: it is\n%.2000v\nand by client-go\n%.2000v", name, got, want)
		}
	}
}

func TestADecoderReadsWhatClientGoReads(t *testing.T) {
	t.Parallel()
	for name, raw := range oddJSON {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkDecoders(t, raw)
		})
	}
}

func TestWhatIsNoObjectIsNotDecoded(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{``, `null`, `1`, `"a"`, `[]`, `{"a":}`, `{"a":1`, `{"a":1,}`, `{'a':1}`, `{"metadata":{"managedFields":[{"fieldsV1":{]}`, `{"metadata":{"uid":"a"`} {
		for name, decode := range map[string]decoder{"whole": whole, "packed or whole": packedOrWhole} {
			if u, err := decode([]byte(raw)); err == nil {
				t.Errorf("%s of %s is %v", name, raw, u.Object)
			}
		}
	}
}

// TestADecoderReadsWhatClientGoReadsOfChangedText changes bytes of the odd ones, each time the same ones.
func TestADecoderReadsWhatClientGoReadsOfChangedText(t *testing.T) {
	t.Parallel()
	const alphabet = `{}[]",:\\0123456789.eE+-ntf u~` + "\xff\n"
	random := rand.New(rand.NewPCG(1, 2))
	valid := 0
	for _, name := range slices.Sorted(maps.Keys(oddJSON)) {
		if len(oddJSON[name]) > 4096 {
			continue
		}
		for range 400 {
			raw := []byte(oddJSON[name])
			for range 1 + random.IntN(3) {
				raw[random.IntN(len(raw))] = alphabet[random.IntN(len(alphabet))]
			}
			if raw[0] != '{' {
				continue // an API server lists and watches objects
			}
			if json.Valid(raw) {
				valid++
			}
			checkDecoders(t, string(raw))
		}
	}
	if valid < 1000 {
		t.Errorf("%d texts are JSON, which tests little", valid)
	}
}

// What is packed as it came has to be what is packed as maps: handlers of events read it.
func TestPackedBytesSayWhatPackedMapsSay(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(inline.Object(t, written).Object)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := packedOrWhole(raw)
	if err != nil || !isPacked(bytes) {
		t.Fatalf("it is packed: %v, error %v", err == nil && isPacked(bytes), err)
	}
	compact := inline.Object(t, written)
	ownership.CompactManagedFields(compact)
	maps := packed(compact)
	for _, u := range []*unstructured.Unstructured{bytes, maps} {
		delete(u.Object, packedField)
	}
	if diff := cmp.Diff(maps.Object, bytes.Object); diff != "" {
		t.Errorf("(-maps +bytes):\n%s", diff)
	}
}

// Whoever writes labels and annotations decides what comes, so that not even its owner's mark makes a cache keep more than
// its bytes.
func TestWhatIsPackedAtOnceIsSmall(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, raw string
		packed      bool
	}{
		"most objects":       {"nobody looks at all of it", deployed("", ""), true},
		"what is large":      {"the transform strips it, or not", oddJSON["what is large"], false},
		"what nobody marked": {"the transform strips it sooner", oddJSON["what nobody marked"], false},
	} {
		u, err := packedOrWhole([]byte(row.raw))
		if err != nil || isPacked(u) != row.packed {
			t.Errorf("%s (%s): packed is %v, error %v", name, row.reason, err == nil && isPacked(u), err)
		}
	}
}

func TestNobodySeesTheBytesOfAnotherObject(t *testing.T) {
	t.Parallel()
	buffer := []byte(deployed(`,"managedFields":[{"fieldsV1":{"f:a":{}}}]`, `,"a":"b"`))
	for name, decode := range map[string]decoder{"whole": whole, "packed or whole": packedOrWhole} {
		raw := append([]byte(nil), buffer...)
		u, err := decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		for i := range raw {
			raw[i] = 'x' // the stream reads the next event into it
		}
		if u, err = unpacked(u); err != nil || u.GetName() != "shop" || u.Object["a"] != "b" || !strings.Contains(fmt.Sprint(u.Object), "f:a") {
			t.Errorf("%s: it is %v, error %v", name, u, err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	raw, err := json.Marshal(inline.Object(b, written).Object)
	if err != nil {
		b.Fatal(err)
	}
	asBefore := func(raw []byte) (*unstructured.Unstructured, error) {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			return nil, err
		}
		ownership.CompactManagedFields(u)
		return packed(u), nil
	}
	for name, decode := range map[string]decoder{"by client-go, and packed": asBefore, "whole": whole, "packed as it came": packedOrWhole} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for range b.N {
				if _, err := decode(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
