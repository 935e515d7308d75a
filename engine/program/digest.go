package program

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/object"
	"operetta.dev/engine/program/syntax"
)

// A digest of a Secret reveals its content to whoever can guess: all likely passwords and PINs
// can be tried. So every digest of what a Secret contains, or may contain, is keyed with a value
// that only those know who may read the Secret.

const (
	// SaltAnnotation is the annotation of an engine's Secret with the key of its digests.
	SaltAnnotation = "operetta.dev/salt"
	// DigestAnnotation is the annotation by which a package reads the digest of what a
	// Secret or a ConfigMap holds, in live and in inputs. No cluster has it.
	DigestAnnotation = "operetta.dev/digest"
	// FixedSalt is the salt of dry runs. Digests that are made with it are not shown.
	FixedSalt = "00000000000000000000000000000000"
)

// digestLength is the number of bytes of a digest that are kept.
const digestLength = 8

// noDigest is the digest of a Secret that has no key, as in a dry run.
var noDigest = strings.Repeat("0", 2*digestLength)

// Digest returns a short digest of data, keyed so that nobody without the key can guess the
// data, or unkeyed for the key "". It errors if the data cannot be encoded as JSON. The digest
// is stable, because keys are sorted.
func Digest(key string, data any) (string, error) {
	buffer, _ := digestBuffers.Get().(*[]byte)
	defer digestBuffers.Put(buffer)
	text, err := object.AppendJSON((*buffer)[:0], data)
	if err != nil {
		return "", fmt.Errorf("encoding what a digest is made of: %w", err)
	}
	if cap(text) <= largestDigested {
		*buffer = text
	}
	if key == "" {
		sum := sha256.Sum256(text)
		return hex.EncodeToString(sum[:digestLength]), nil
	}
	hash := hmac.New(sha256.New, []byte(key))
	hash.Write(text)
	return hex.EncodeToString(hash.Sum(nil)[:digestLength]), nil
}

// digestBuffers are for Digest, of which each may grow to largestDigested bytes.
var digestBuffers = sync.Pool{New: func() any { return new([]byte) }}

const largestDigested = 64 << 10

// keyOf returns the key of the digests of a live Secret that the package renders: its salt, or
// without one the key that it has as an input.
func keyOf(content map[string]any) string {
	salt, _, _ := unstructured.NestedString(content, "metadata", "annotations", SaltAnnotation)
	if salt != "" && object.MayBeSecretIn(content) {
		return salt
	}
	return InputKeyOf(content)
}

// InputKeyOf returns the key of the digests of a Secret that the package reads: its UID, which only clients that may
// read the Secret know. It returns "" for other kinds, and for an object that is not from a cluster.
func InputKeyOf(content map[string]any) string {
	uid, _, _ := unstructured.NestedString(content, "metadata", "uid")
	if uid == "" || !object.MayBeSecretIn(content) {
		return ""
	}
	return "uid " + uid
}

// dataFields are the fields of Secrets and ConfigMaps with their content.
var dataFields = []string{"data", "binaryData", "stringData"}

// dataDigest returns the digest of the content of a Secret, with a key, or of a ConfigMap. It
// returns "" for other kinds. It compares the kind as text, and not by [object.IsSecret], because it runs for each object of
// each evaluation, and the tests bound what it allocates.
func dataDigest(content map[string]any, key string) string {
	if content["apiVersion"] != "v1" || content["kind"] != object.SecretKind && content["kind"] != "ConfigMap" {
		return ""
	}
	if content["kind"] == object.SecretKind && (key == "" || key == FixedSalt) {
		return noDigest
	}
	held := map[string]any{"purpose": "data"} // no manifest has the same digest
	for _, field := range dataFields {
		if v, ok := content[field].(map[string]any); ok && len(v) > 0 {
			held[field] = v
		}
	}
	digest, err := Digest(key, held)
	if err != nil {
		return ""
	}
	return digest
}

// digested returns an object with the digest of its content as an annotation.
func digested(object map[string]any, key string) map[string]any {
	digest := dataDigest(object, key)
	if digest == "" {
		return object
	}
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	return with(object, "metadata", with(meta, "annotations", with(annotations, DigestAnnotation, digest)))
}

// with returns a copy of a map in which a key has a value.
func with(m map[string]any, key string, value any) map[string]any {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]any{}
	}
	out[key] = value
	return out
}

// digested returns a session in which every object has the digest of its content as an
// annotation, if the package refers to any. It runs before secrets are replaced, because a
// message may show what depends on a digest.
func (v *Views) digested(s Session) Session {
	if !v.digests {
		return s
	}
	return s.withObjects(func(_, _ string, object map[string]any) map[string]any {
		return digested(object, keyOf(object))
	}, func(object map[string]any) map[string]any {
		return digested(object, InputKeyOf(object))
	})
}

// refersToDigests reports whether a reference may lead to the annotation with the digest.
func refersToDigests(references []syntax.Reference) bool {
	return slices.ContainsFunc(references, func(r syntax.Reference) bool {
		at := map[string]int{"live": 3, "inputs": 3}[r.Path[0]]
		if at == 0 {
			return false
		}
		if r.Path[0] == "inputs" && len(r.Path) > 2 && r.Path[2] == "objects" {
			at = 4
		}
		for i, name := range []string{"metadata", "annotations", DigestAnnotation} {
			if len(r.Path) <= at+i {
				return true // it may be computed
			}
			if r.Path[at+i] != name {
				return false
			}
		}
		return true
	})
}
