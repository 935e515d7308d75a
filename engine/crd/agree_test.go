package crd_test

import (
	"fmt"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/crd"
	"operetta.dev/engine/crd/conform"
)

// samples are tried with every type: a value that is valid for one is invalid for most others.
var samples = []string{
	"-1", "0", "1", "2", "3", "5", "7", "10", "11", "100", "101", "255", "256", "2147483647", "2147483648", "9223372036854775807",
	"0.5", "1.5", "5.5", "-0.5", "true", "false",
	`""`, `a`, `b`, `c`, `z`, `ab`, `abc`, `abcde`, `äöü`, `"5"`, `const`, `1s`, `1h30m`, `"-5m"`, `3 weeks`, `"2024-01-02"`, `"2024-01-02T03:04:05Z"`, `10.0.0.1`, `"::1"`,
	"[]", "[a]", "[a, b]", "[a, b, c, d]", "[a, a]", "[1]", "[1, 2]", "[1, 2, 3]", "[[]]", "[{x: 1}]", "[{x: 1}, {x: 2}]", "[{x: 1}, {x: 1}]", "[{}]",
	"{}", "{x: 1}", "{x: a}", "{x: 5, y: b}", "{y: b}", "{a: 1}", "{a: b}", "{a: {x: 1}}", "{a: {}}", "{a: 1, b: 2, c: 3}", "{x: 1, z: 1}",
}

// types are all that a CRD can express.
var types = []string{
	"int", "string", "bool", "number", "uint", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
	"int & >=1 & <=100", "int & >1 & <100", "int & >1.5", "int & <=4.5", "number & >=1.5", "number & >1.5", "number & <=1.5", "number & <1.5", "number & >=-0.5", "number & >-0.5", "number & <=-0.5", "number & < -0.5", "number & !=1.5", "number & !=1", ">=1 & <=10", "number & !=5", "int & !=5 & !=7", "int | *3", "int & >=2 | *1", "#Bounded", "#Bounded | *2",
	"1 | 2 | *3", "1", "1.5", "0.5 | 1.5", "0.5 | 1", "number | *3", "1 | >=100 | *2", "int & (<0 | >100)", "1 | >=100", "true", "bool | *true",
	"#Enum", `#Enum | *"b"`, `*"x" | string`, `"const"`, `=~"^a"`, `=~"^a" & =~"b$"`, `!~"^a"`, `!=""`, `!="a"`, `!="a" & !="b"`, `"a" | =~"^[0-9]+$"`,
	"strings.MinRunes(2)", "strings.MaxRunes(3)", "strings.MinRunes(2) & strings.MaxRunes(3)", `strings.MinRunes(3) | *""`, `=~"^a" | *"b"`,
	"time.Duration", "string & net.IPv4", "string & net.IP", `time.Format("2006-01-02")`, "time.Time",
	"int | string", `int | string | *"x"`, `int & >=5 | =~"^a"`, `int | "a"`, `1 | "a"`, `number | =~"^[0-9]+s$"`,
	"null | string", "null | int & >=5", `null | "a" | "b"`, "null | #Sub", "null | [...int]",
	"[...int]", "[...string]", "[...#Enum]", "#List", `#List | *["a"]`, "[string, ...string]", "[int, int]", "[...string] & list.MaxItems(2)",
	"[...string] & list.UniqueItems()", "[...[...int]]", "[...#Sub]", "[...#Must]", "[...(int | string)]",
	"{[string]: int}", "{[string]: string}", "{[string]: #Sub}", "{[string]: int} & struct.MinFields(1)", "{[string]: int} & struct.MaxFields(2)",
	"{}", "#Sub", "#Must", "#Sub & {x: >=2}", "{#Must, y?: string}", "{x?: int, y: string | *\"d\"}",
	"[...#Must] & list.MaxItems(3) @crd(listType=map, listMapKey=x)",
}

// TestF28K50CUEAndTheServerAgree tries every sample with every type, as a value of a field and
// deep inside of lists and maps.
func TestF28K50CUEAndTheServerAgree(t *testing.T) {
	t.Parallel()
	places := map[string]struct{ reason, schema, value string }{
		"Regular":  {"a field with or without a default", "f: %s", "{f: %s}"},
		"Optional": {"a field that may be left out", "f?: %s", "{f: %s}"},
		"Element":  {"an element of a list in a map", "f?: [string]: [...{v!: %s}]", "{f: {key: [{v: %s}]}}"},
	}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, typ := range types {
				if name != "Regular" && strings.Contains(typ, "@crd") {
					continue // an attribute is for the field, which here is around the type
				}
				agreeOn(t, typ, fmt.Sprintf(place.schema, typ), place.value, place.reason)
			}
		})
	}
}

// known are the disagreements that there is nothing to do about.
func known(typ, spec string) bool {
	switch {
	case strings.HasPrefix(typ, "number | =~"):
		// x-kubernetes-int-or-string has no fractions.
		return strings.Contains(spec, ".5")
	case strings.Contains(typ, "listType=map"):
		// It is the point of the list type that CUE has no word for.
		return strings.Contains(spec, "[{x: 1}, {x: 1}]")
	}
	return false
}

func agreeOn(t *testing.T, typ, schema, value, reason string) {
	t.Helper()
	source := strings.Replace(prelude, `"list"`, "\"list\"\n\t\"net\"", 1) + "_alsoUnused: net.IP\n#Spec: {\n" + schema + "\n}\n"
	input := cuecontext.New().CompileString(source, cue.Filename("agree.cue"))
	generated, err := crd.Generate(definitionOf(input))
	if err != nil {
		t.Errorf("%s, %s: %v", reason, typ, err)
		return
	}
	if err := conform.Check(generated); err != nil {
		t.Errorf("%s, %s: %v", reason, typ, err)
		return
	}
	server, err := conform.NewServer(generated, "v1")
	if err != nil {
		t.Fatal(err)
	}
	spec := input.LookupPath(cue.ParsePath("#Spec"))
	specs := []string{"{}"}
	for _, s := range samples {
		specs = append(specs, fmt.Sprintf(value, s))
	}
	for _, text := range specs {
		object := resource(t, []byte(text), "spec")
		stored, serverErr := server.Admit(object, nil)
		given, cueErr := evaluate(spec, object["spec"])
		if (serverErr == nil) != (cueErr == nil) && !known(typ, text) {
			t.Errorf("%s, %s, %s:\nCUE: %v\nthe API server: %v", reason, typ, text, cueErr, serverErr)
		}
		if serverErr != nil || cueErr != nil {
			continue
		}
		after, err := evaluate(spec, stored["spec"])
		if err != nil {
			t.Errorf("%s, %s, %s: CUE refuses what is stored: %v", reason, typ, text, err)
		} else if diff := cmp.Diff(normal(t, given), normal(t, after)); diff != "" {
			t.Errorf("%s, %s, %s: (-user +server)\n%s", reason, typ, text, diff)
		}
	}
}
