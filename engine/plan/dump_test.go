package plan_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/plan"
)

// secretive is a package that reads a Secret, copies it into its own one, and into a ConfigMap.
const secretive = `
#Spec: size: int | *1
inputs: login: {apiVersion: "v1", kind: "Secret", name: "login"}
components: own: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: "own", data: token: inputs.login.object.data.token}
components: open: objects: config: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "open", data: {token: inputs.login.object.data.token, mode: "fast"}}
components: fixed: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: "fixed", stringData: key: "opensesame-\(cr.spec.size)"}
`

// emptySecret is a package with a Secret that has an empty field, which an API server does not store.
const emptySecret = `
#Spec: size: int | *1
components: own: objects: secret: {apiVersion: "v1", kind: "Secret", metadata: name: "own", data: {}}
`

// token is the value of that Secret.
const token = "canary-8f3a91"

// login returns that Secret.
func login() *unstructured.Unstructured {
	u := object("Secret", "login", map[string]any{"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(token))}})
	u.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"stringData":{"token":"` + token + `"}}`, "note": "it is " + token})
	return u
}

// dumped returns the file of a dump for a package, which plans of it need.
func dumped(t testing.TB, on plan.Snapshot, o plan.Options) []byte {
	t.Helper()
	r := plan.NewRecorder(on, o.New.Program.Name(), shopKind, now)
	o.Cluster = r
	make1(t, o)
	var out bytes.Buffer
	if err := r.Dump().Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// read decodes the file of a dump.
func read(t testing.TB, file []byte) *plan.Dump {
	t.Helper()
	d, err := plan.DecodeDump(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAPlanOfADumpIsThatOfTheCluster(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ before, after string }{
		"nothing changes": {body, body},
		"a value":         {body, strings.Replace(body, "web:1", "web:2", 1)},
		"a component less": {
			body + `components: more: objects: config: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "\(cr.metadata.name)-more"}` + "\n", body,
		},
		"Secrets that stay":        {secretive, secretive},
		"a Secret without content": {emptySecret, emptySecret},
		"a value beside them":      {secretive, strings.Replace(secretive, "fast", "safe", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := serve(t, load(t, row.before), login(), shop("a", map[string]any{}), shop("b", map[string]any{"size": int64(2)}))
			if row.before == emptySecret {
				on.edit(t, "Secret", "own", func(u *unstructured.Unstructured) { delete(u.Object, "data") })
			}
			after := plan.Options{Cluster: on, New: plan.Version{Program: load(t, row.after)}}
			want := make1(t, after)
			if row.before == row.after && want.Changes() {
				t.Errorf("the same package changes something: %v", said(want))
			}
			after.Cluster = read(t, dumped(t, on, after))
			got := make1(t, after)
			if diff := cmp.Diff(said(want), said(got)); diff != "" {
				t.Errorf("(-cluster +dump):\n%s", diff)
			}
			if len(got.Notes) > 0 {
				t.Errorf("the dump does not have what its own plan reads: %v", got.Notes)
			}
		})
	}
}

func TestADumpHoldsNoValueOfASecret(t *testing.T) {
	t.Parallel()
	p := load(t, secretive)
	on := serve(t, p, login(), shop("a", map[string]any{}))
	file := dumped(t, on, plan.Options{New: plan.Version{Program: p}})
	_, lines := unpack(t, file)
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, secret := range []string{token, encoded(token), encoded(encoded(token)), "opensesame", encoded("opensesame-1"), `"operetta.dev/salt":"`} {
		if bytes.Contains(lines, []byte(secret)) {
			t.Errorf("the dump has %q:\n%s", secret, lines)
		}
	}
	// Whoever knows the rest of an object can guess what a digest without a key is of.
	open := on.World.Get(cluster.RefOf(object("ConfigMap", "open", map[string]any{}))).GetAnnotations()[ownership.AppliedAnnotation]
	if open == "" || bytes.Contains(lines, []byte(open)) {
		t.Errorf("the dump has the digest %q of an object that repeats a Secret", open)
	}
	if !bytes.Contains(lines, []byte(`"login"`)) {
		t.Error("the dump does not have the Secret at all")
	}
	if _, again := unpack(t, dumped(t, on, plan.Options{New: plan.Version{Program: p}})); bytes.Equal(lines, again) {
		t.Error("two dumps have the same key, so that one who can make dumps can guess what is in another")
	}
}

// A UID of a Secret is the key of the digests of what it holds: with both, a short value can be guessed.
func TestADumpHoldsNoUIDOfASecret(t *testing.T) {
	t.Parallel()
	const ofSecret, ofOther = "8f3a91c0-1d2e-4f3a-9b4c-5d6e7f8a9b0c", "11d2a3b4-5c6d-4e7f-8a9b-0c1d2e3f4a5b"
	p := load(t, repeating)
	on := serve(t, p, shop("a", map[string]any{}))
	secret, other := login(), object("ConfigMap", "other", map[string]any{})
	secret.SetUID(ofSecret)
	other.SetUID(ofOther)
	other.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "login", UID: ofSecret}})
	for _, u := range []*unstructured.Unstructured{secret, other} {
		if _, err := on.World.Cluster.Restore("person", u); err != nil {
			t.Fatal(err)
		}
	}
	_, lines := unpack(t, dumped(t, on, plan.Options{New: plan.Version{Program: p}}))
	if bytes.Contains(lines, []byte(ofSecret)) {
		t.Errorf("the dump has the UID of the Secret:\n%s", lines)
	}
	if !bytes.Contains(lines, []byte(ofOther)) {
		t.Error("the dump does not have the UID of another object")
	}
	// An inventory has the beginning of the UID, and an owner reference all of it.
	standIns := map[string]int{}
	for _, uid := range regexp.MustCompile(`8f3a91c0-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`).FindAll(lines, -1) {
		standIns[string(uid)]++
	}
	if len(standIns) != 1 {
		t.Errorf("the stand-ins for the UID are %v, want one that is the same everywhere", standIns)
	}
	for uid, n := range standIns {
		if n < 2 {
			t.Errorf("%s is there %d times, want it in the Secret and in the owner reference", uid, n)
		}
	}
}

func TestADumpSaysWhatItDoesNotHave(t *testing.T) {
	t.Parallel()
	on := serve(t, load(t, body), shop("a", map[string]any{}))
	d := read(t, dumped(t, on, plan.Options{New: plan.Version{Program: load(t, body)}}))
	p := make1(t, plan.Options{Cluster: d, New: plan.Version{Program: load(t, body+`components: more: objects: config: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "new"}`)}})
	want := []string{"the dump does not say whether ConfigMap default/new exists, so the plan takes it as absent"}
	if diff := cmp.Diff(want, p.Notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// unpack returns the contents of the two files of a dump.
func unpack(t testing.TB, file []byte) (head, lines []byte) {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	in := tar.NewReader(zip)
	var out [2][]byte
	for i := range out {
		if _, err := in.Next(); err != nil {
			t.Fatal(err)
		}
		if out[i], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
	}
	return out[0], out[1]
}

// pack returns a compressed tar file.
func pack(t testing.TB, files ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, h := range files {
		content := h.PAXRecords["content"]
		h.PAXRecords = nil
		if h.Size = int64(len(content)); h.Typeflag != 0 && h.Typeflag != tar.TypeReg {
			h.Size = 0
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// file returns a file to pack.
func file(name, content string) tar.Header {
	return tar.Header{Name: name, Mode: 0o600, PAXRecords: map[string]string{"content": content}}
}

func TestABrokenDumpIsRefused(t *testing.T) {
	t.Parallel()
	on := serve(t, load(t, body), shop("a", map[string]any{}))
	whole := dumped(t, on, plan.Options{New: plan.Version{Program: load(t, body)}})
	h, l := unpack(t, whole)
	head, lines := string(h), string(l)
	first, _, _ := strings.Cut(lines, "\n")
	for name, row := range map[string]struct {
		file []byte
		want string
	}{
		"no file at all":          {nil, "it is not a file of operetta dump"},
		"another kind of file":    {[]byte("apiVersion: v1\n"), "it is not a file of operetta dump"},
		"half of it":              {whole[:len(whole)/2], "incomplete"},
		"without its end":         {whole[:len(whole)-4], "incomplete"},
		"without its objects":     {pack(t, file("dump.json", head)), "there is no objects.jsonl"},
		"a path upwards":          {pack(t, file("../dump.json", head), file("objects.jsonl", lines)), `it has the file "../dump.json"`},
		"an absolute path":        {pack(t, file("/etc/dump.json", head)), `it has the file "/etc/dump.json"`},
		"a link":                  {pack(t, file("dump.json", head), tar.Header{Name: "objects.jsonl", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), "its objects.jsonl is no regular file"},
		"one more file":           {pack(t, file("dump.json", head), file("objects.jsonl", lines), file("more", "x")), `it has another file, "more"`},
		"objects of another dump": {pack(t, file("dump.json", head), file("objects.jsonl", strings.Replace(lines, "web:1", "web:9", 1))), "it is incomplete, or was changed"},
		"a line less":             {pack(t, file("dump.json", head), file("objects.jsonl", strings.TrimPrefix(lines, first+"\n"))), "it is incomplete, or was changed"},
		"another format":          {pack(t, file("dump.json", strings.Replace(head, `"format":1`, `"format":2`, 1)), file("objects.jsonl", lines)), "it has format 2, and this version of operetta reads format 1"},
		"no format":               {pack(t, file("dump.json", `{}`), file("objects.jsonl", lines)), "it has format 0"},
		"no JSON":                 {pack(t, file("dump.json", `{`), file("objects.jsonl", lines)), "is no JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := plan.DecodeDump(bytes.NewReader(row.file)); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("the error is %v, want %q", err, row.want)
			}
		})
	}
}

func TestAFolderIsADumpWithoutLinks(t *testing.T) {
	t.Parallel()
	on := serve(t, load(t, body), shop("a", map[string]any{}))
	head, lines := unpack(t, dumped(t, on, plan.Options{New: plan.Version{Program: load(t, body)}}))
	dir := t.TempDir()
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("dump.json", head)
	if _, err := plan.ReadDump(dir); err == nil || !strings.Contains(err.Error(), "there is no objects.jsonl") {
		t.Errorf("half a folder: %v", err)
	}
	write("elsewhere", lines)
	if err := os.Symlink("elsewhere", filepath.Join(dir, "objects.jsonl")); err != nil {
		t.Fatal(err)
	}
	if _, err := plan.ReadDump(dir); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a link: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "objects.jsonl")); err != nil {
		t.Fatal(err)
	}
	write("objects.jsonl", lines)
	if _, err := plan.ReadDump(dir); err != nil {
		t.Error(err)
	}
}

// FuzzDecodeDump looks for files that are read although they say something else than they hold, or that panic.
func FuzzDecodeDump(f *testing.F) {
	p := load(f, body)
	on := serve(f, p, shop("a", map[string]any{}))
	whole := dumped(f, on, plan.Options{New: plan.Version{Program: p}})
	head, lines := unpack(f, whole)
	f.Add(whole, head, lines)
	f.Add(whole[:100], []byte(`{"format":1}`), []byte(`{"apiVersion":"v1","kind":"List","items":[{}]}`))
	f.Add([]byte{}, []byte(fmt.Sprintf(`{"format":1,"bytes":%d,"resources":-1,"objects":1}`, len(lines))), lines)
	f.Fuzz(func(t *testing.T, whole, head, lines []byte) {
		if d, err := plan.DecodeDump(bytes.NewReader(whole)); err == nil && d == nil {
			t.Error("neither a dump nor an error")
		}
		d, err := plan.DecodeDump(bytes.NewReader(pack(t, file("dump.json", string(head)), file("objects.jsonl", string(lines)))))
		if err != nil {
			return
		}
		if d.Len() != bytes.Count(lines, []byte("\n")) {
			t.Errorf("%d objects of %d lines", d.Len(), bytes.Count(lines, []byte("\n")))
		}
	})
}
