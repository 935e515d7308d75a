package redact_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/redact"
	"operetta.dev/test/machine"
)

// secret is a Secret with one value.
func secret(value string) map[string]any {
	return map[string]any{"kind": "Secret", "data": map[string]any{"k": base64.StdEncoding.EncodeToString([]byte(value))}}
}

func TestValuesAreTakenOutInEveryForm(t *testing.T) {
	t.Parallel()
	const plain = "pa\"ss\nword<1>"
	encoded := base64.StdEncoding.EncodeToString([]byte(plain))
	for name, c := range map[string]struct{ reason, value, text, want string }{
		"as it is":              {"the plain case", "opensesame", "is opensesame, wanted", "is ***, wanted"},
		"encoded":               {"as the API server has it", plain, "data.k: " + encoded, "data.k: ***"},
		"quoted by Go":          {"API servers print values with %q", plain, fmt.Sprintf("Invalid value: %q", plain), `Invalid value: "***"`},
		"escaped by JSON":       {"errors quote requests", plain, `{"k":"pa\"ss\nword\u003c1\u003e"}`, `{"k":"***"}`},
		"on one line":           {"messages are", plain, `pa"ss; word<1>`, "***"},
		"with a line end":       {"echo leaves one, which few messages have", "hunter2000\n", "is hunter2000", "is ***"},
		"within a word":         {"authors put values together", "opensesame", "postgres://u:opensesame@host/xopensesamex", "postgres://u:***@host/x***x"},
		"in another case":       {"names are in lower case", "OpenSesame", "cm-opensesame", "cm-***"},
		"one of its lines":      {"an error may quote one", "-----BEGIN-----\nMIIEvQIBADANBgkq\n-----END-----", "line 2: MIIEvQIBADANBgkq", "line 2: ***"},
		"a text in JSON":        {"the password of a registry", `{"auths":{"r":{"password":"opensesame"}}}`, "login with opensesame", "login with ***"},
		"cut in the middle":     {"status leaves the middle out", "opensesame-and-more-of-it", "value: opensesame-an ... ore-of-it (x:1)", "value: *** ... *** (x:1)"},
		"a short one":           {"on its own", "abcd", `"abcd" is no number`, `"***" is no number`},
		"a short one in a word": {"a gap in a word tells it", "barn", "the barnyard barn", "the barnyard ***"},
		"too short":             {"it is everywhere", "abc", "abc", "abc"},
		"a common word":         {"a gap in a sentence tells it", "true", "is true, wanted false", "is true, wanted false"},
		"a port":                {"it may be a line or a count as well", "5432", "shop.cue:5432", "shop.cue:5432"},
		"a long number":         {"it is none of those", "90125432", "is 90125432", "is ***"},
		"a name":                {"the engine has to say it", "postgres-shop", "StatefulSet town/postgres-shop", "StatefulSet town/postgres-shop"},
		"nothing":               {"there is nothing to take out", "", "all is well", "all is well"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redact.New()
			r.Add(secret(c.value))
			r.AllowNames("postgres-shop")
			if got := r.Text(c.text); got != c.want {
				t.Errorf("%s: %s becomes %s, want %s", c.reason, c.text, got, c.want)
			}
		})
	}
}

func TestWhereValuesComeFrom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		object map[string]any
		want   string
	}{
		"the data of a Secret":   {secret("opensesame"), "***"},
		"its stringData":         {map[string]any{"kind": "Secret", "stringData": map[string]any{"k": "opensesame"}}, "***"},
		"data that is no base64": {map[string]any{"kind": "Secret", "data": map[string]any{"k": "opensesame!"}}, "opensesame"},
		"what kubectl has kept": {map[string]any{"kind": "Secret", "metadata": map[string]any{"annotations": map[string]any{
			"kubectl.kubernetes.io/last-applied-configuration": `{"stringData":{"k":"opensesame"}}`,
		}}}, "***"},
		"not a ConfigMap": {map[string]any{"kind": "ConfigMap", "data": map[string]any{"k": "opensesame"}}, "opensesame"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redact.New()
			r.Add(c.object)
			if got := r.Text("opensesame"); got != c.want {
				t.Errorf("it becomes %s, want %s", got, c.want)
			}
		})
	}
}

func TestDataIsRedactedInCopies(t *testing.T) {
	t.Parallel()
	r := redact.New()
	r.Add(secret("opensesame"))
	data := map[string]any{"a": []any{"x opensesame", int64(1)}, "opensesame": nil}
	want := map[string]any{"a": []any{"x ***", int64(1)}, "***": nil}
	if diff := cmp.Diff(want, r.Data(data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if data["a"].([]any)[0] != "x opensesame" {
		t.Error("the data itself was changed")
	}
}

func TestARedactedErrorIsTheSame(t *testing.T) {
	t.Parallel()
	r := redact.New()
	r.Add(secret("opensesame"))
	err := r.Error(fmt.Errorf("reading opensesame: %w", fs.ErrNotExist))
	if err.Error() != "reading ***: file does not exist" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is %v", err)
	}
	if err := r.Error(fs.ErrNotExist); r.Error(nil) != nil || !errors.Is(err, fs.ErrNotExist) || err.Error() != fs.ErrNotExist.Error() {
		t.Error("an error without a secret is another one")
	}
}

func TestALogIsRedactedWhateverItSays(t *testing.T) {
	t.Parallel()
	r := redact.New()
	var out bytes.Buffer
	log := r.Log(logr.FromSlogHandler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	r.Add(secret("opensesame")) // a Secret that is added later counts as well
	log = log.WithName("n").WithValues("with", "opensesame")
	log.Info("opensesame", "text", "opensesame", "struct", struct{ V string }{"opensesame"}, "map", map[string]string{"k": "opensesame"}, "bytes", []byte("x"))
	log.V(1).Info("opensesame")
	log.Error(errors.New("opensesame"), "opensesame", "error", errors.New("opensesame"))
	if strings.Contains(out.String(), "opensesame") || strings.Count(out.String(), "***") < 10 {
		t.Error(out.String())
	}
}

func TestANilRedactorChangesNothing(t *testing.T) {
	t.Parallel()
	var r *redact.Redactor
	r.Add(secret("opensesame"))
	r.AllowNames("x")
	if r.Text("opensesame") != "opensesame" || r.Data("opensesame") != "opensesame" {
		t.Error("it does")
	}
}

func TestALargeSecretIsTakenOutInTime(t *testing.T) {
	t.Parallel()
	r := redact.New()
	large := strings.Repeat("0123456789abcdef\n", 60_000)
	r.Add(secret(large))
	if got := r.Text("it is " + large + " and no more"); len(got) > 2000 {
		t.Errorf("%d bytes are left", len(got))
	}
}

func TestANameTriesNoMoreValuesThanItHasWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason, name, value string
		said                bool
	}{
		"the whole name":             {"the gap would tell it", "hunter2", "hunter2", true},
		"a word of the name":         {"the gap would tell it", "shop-hunter2-db", "hunter2", true},
		"digits in a long row":       {"who chooses the name would try all of them at once", "x0123454711740987654321", "471174", false},
		"a part of a word":           {"it is only looked for as a word", "shophunter2", "hunter2", false},
		"a part of one that is long": {"it is looked for within words as well", "shop-opensesames", "opensesame", true},
		"one word of several":        {"the first is none", "xhunter2-hunter2", "hunter2", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redact.New()
			r.Add(map[string]any{"kind": "Secret", "stringData": map[string]any{"k": c.value}})
			r.AllowNames(c.name)
			text := "Service " + c.name + `: it is "` + c.value + `"`
			got := r.Text(text)
			if said := strings.Contains(got, `"`+c.value+`"`); said != c.said || !strings.Contains(got, c.name) {
				t.Errorf("%s: %q", c.reason, got)
			}
		})
	}
}

// TestManyValuesAreTakenOutInTime: whoever writes a Secret decides how many values it has, and each reconcile of each resource
// that reads it redacts dozens of texts. To search each text for each value took seconds of a processor for each of them.
func TestManyValuesAreTakenOutInTime(t *testing.T) {
	t.Parallel()
	const values = 30_000 // an API server takes 1 MiB
	for name, c := range map[string]struct{ reason, value, text, want string }{
		"a text":             {"the plain case", "%012d", strings.Repeat("the component web waits for something ", 50), ""},
		"a truncated text":   {"the remains of each value may be beside it", "%012d", strings.Repeat("it waits for ... ", 120), ""},
		"a common beginning": {"each place of the text may begin each value", strings.Repeat("0", 12) + "%06d", strings.Repeat("0", 2000), "***"},
		"one of them":        {"the others hide none", "%012d", "it is 000000000042 ... 000000042 and 000000 ... x", "it is *** ... *** and *** ... x"},
		"in a long text":     {"a package may report one", "%012d", strings.Repeat("x", 1<<20) + "000000000042", strings.Repeat("x", 1<<20) + "***"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := map[string]any{}
			for i := range values {
				data[fmt.Sprint("k", i)] = fmt.Sprintf(c.value, i)
			}
			r := redact.New()
			r.Add(map[string]any{"kind": "Secret", "stringData": data})
			for i := range 500 {
				r.AllowNames(fmt.Sprintf("the-name-of-an-object-that-is-long-%d", i))
			}
			began := time.Now()
			got := r.Text("it is 1")
			patterns := time.Since(began)
			for range 20 {
				got = r.Text(c.text)
			}
			each := (time.Since(began) - patterns) / 20
			t.Logf("patterns in %s, a text in %s", patterns, each)
			want := c.want
			if want == "" {
				want = c.text
			}
			if got != want {
				t.Errorf("%s: it becomes %.200s", c.reason, got)
			}
			if limit := machine.Limit(time.Second); patterns > limit || each > limit/10 {
				t.Errorf("%s: the patterns took %s, and a text %s", c.reason, patterns, each)
			}
		})
	}
}

// TestNoValueIsLeft redacts texts of few letters, in which values overlap, repeat and contain each other, and are truncated.
func TestNoValueIsLeft(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	word := func(longest int) string {
		var b strings.Builder
		for range 1 + random.IntN(longest) {
			b.WriteByte("abAB."[random.IntN(5)])
		}
		return b.String()
	}
	for range 2000 {
		r := redact.New()
		var values []string
		for range 1 + random.IntN(5) {
			values = append(values, word(20))
			r.Add(map[string]any{"kind": "Secret", "stringData": map[string]any{"k": values[len(values)-1]}})
		}
		text := ""
		for range 6 {
			text += word(8)
			if v := values[random.IntN(len(values))]; random.IntN(2) == 0 {
				text += v
			} else {
				text += v[:len(v)/2] + "..." + v[len(v)-len(v)/2:]
			}
		}
		got := r.Text(text)
		for _, v := range values {
			if len(v) >= 8 && strings.Contains(strings.ToLower(got), strings.ToLower(v)) {
				t.Errorf("%q becomes %q with %q in it", text, got, v)
			}
		}
	}
}
