package capsule_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/capsule"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
	"operetta.dev/engine/redact"
	"operetta.dev/test/inline"
)

// contentOf returns the text of a capsule, with what is packed in it.
func contentOf(t *testing.T, c *capsule.Capsule) string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(c.Objects))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for in := tar.NewReader(zip); ; {
		_, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
}

// A package may give a digest of a Secret away, because it has a key: the UID of the Secret. Whoever has a capsule must not have
// both, or a script would try all short passwords.
func TestACapsuleHasNoKeyOfADigestThatItHas(t *testing.T) {
	t.Parallel()
	const uid, short = "8f3a91c0-1d2e-4f3a-9b4c-5d6e7f8a9b0c", "MTIzNA==" // 1234
	o := newOperator(t, capsule.Options{})
	login := inline.Object(t, `{apiVersion: v1, kind: Secret, metadata: {name: login, namespace: town}, data: {password: `+short+`}}`)
	before, err := o.GetLive(t.Context(), cluster.RefOf(login))
	if err != nil || before == nil {
		t.Fatal(before, err)
	}
	if err := o.DeleteInBackground(cluster.RefOf(login), before.GetUID()); err != nil {
		t.Fatal(err)
	}
	login.SetUID(uid)
	if _, err := o.Restore("person", login); err != nil {
		t.Fatal(err)
	}
	o.program = inline.Program(t, strings.NewReplacer(
		"hex.Encode(sha256.Sum256(given))", `inputs.secret.object.metadata.annotations."operetta.dev/digest"`, "let given = base64.Decode(null, inputs.secret.object.data.password)\n", "",
		"\t\"crypto/sha256\"\n", "", "\t\"encoding/base64\"\n", "", "\t\"encoding/hex\"\n", "",
	).Replace(shop))
	o.put(t, corner)
	o.reconcile(t, "corner")
	o.files(t, "corner", 1)
	o.reconcile(t, "corner")
	c, err := capsule.Read(o.files(t, "corner", 2)[1])
	if err != nil {
		t.Fatal(err)
	}
	u, err := o.GetLive(t.Context(), cluster.RefOf(inline.Object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: corner, namespace: town}}`)))
	if err != nil || u == nil {
		t.Fatal(u, err)
	}
	digest, _, _ := unstructured.NestedString(u.Object, "data", "digest")
	guess := func(uid string) string {
		out, err := program.Digest(program.InputKeyOf(map[string]any{"kind": "Secret", "metadata": map[string]any{"uid": uid}}), map[string]any{"purpose": "data", "data": map[string]any{"password": short}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if digest != guess(uid) {
		t.Fatalf("the digest is %q, and that of the password %q: this test guesses wrongly", digest, guess(uid))
	}
	content := contentOf(t, c)
	if !strings.Contains(content, digest) {
		t.Error("the capsule does not have the digest that the cluster has")
	}
	for _, key := range regexp.MustCompile(`"uid":"([^"]+)"`).FindAllStringSubmatch(content, -1) {
		if guess(key[1]) == digest {
			t.Errorf("with the UID %s of the capsule, its digest %s tells the password", key[1], digest)
		}
	}
	if again, _ := replay(t, c, o.program); !again.Equal(c.Decision) {
		t.Errorf("it decides otherwise: %v", capsule.Compare(c.Decision, again))
	}
}

// The decision is made with a salt that everybody knows: its digest of a Secret would tell a short value that is masked beside it.
func TestADecisionHasNoDigestOfASecret(t *testing.T) {
	t.Parallel()
	o := newOperator(t, capsule.Options{})
	o.put(t, corner)
	o.reconcile(t, "corner")
	file := o.files(t, "corner", 1)[0]
	c, err := capsule.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"ConfigMap": "a digest", "Secret": redact.Mask, "Deployment": "a digest"}, marksIn(c.Decision)); diff != "" {
		t.Errorf("the marks of the objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"ConfigMap": "a digest", "Secret": redact.Mask, "Deployment": "a digest"}, digestsIn(c.Decision)); diff != "" {
		t.Errorf("the digests of the inventory (-want +got):\n%s", diff)
	}
	// A capsule that an earlier version has written has the digests. It is decided as before all the same.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	earlier := strings.ReplaceAll(string(text), `"operetta.dev/applied": "***"`, `"operetta.dev/applied": "0123456789abcdef"`)
	earlier = strings.ReplaceAll(earlier, `"digest": "***"`, `"digest": "0123456789abcdef"`)
	if earlier == string(text) {
		t.Fatal("the file has no digest that is masked")
	}
	if c, err = capsule.Decode(strings.NewReader(earlier)); err != nil {
		t.Fatal(err)
	}
	if again, _ := replay(t, c, o.program); !again.Equal(c.Decision) {
		t.Errorf("it decides otherwise: %v", capsule.Compare(c.Decision, again))
	}
}

// marksIn returns what the objects that a decision writes have as the digest of what was applied, by kind.
func marksIn(d capsule.Decision) map[string]string {
	out := map[string]string{}
	for _, w := range d.Writes {
		u := &unstructured.Unstructured{Object: w.Manifest}
		out[u.GetKind()] = shown(u.GetAnnotations()[ownership.AppliedAnnotation])
	}
	return out
}

// digestsIn returns the digests in the inventory of a decision, by kind.
func digestsIn(d capsule.Decision) map[string]string {
	out := map[string]string{}
	groups, _, _ := unstructured.NestedSlice(d.Status, "inventory")
	for _, g := range groups {
		group, _ := g.(map[string]any)
		objects, _ := group["objects"].([]any)
		for _, o := range objects {
			entry, _ := o.(map[string]any)
			out[fmt.Sprint(entry["kind"])] = shown(fmt.Sprint(entry["digest"]))
		}
	}
	return out
}

// shown returns "a digest" for one, and everything else as it is.
func shown(text string) string {
	if regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(text) {
		return "a digest"
	}
	return text
}
