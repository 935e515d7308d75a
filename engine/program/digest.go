package program

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"operetta.dev/engine/program/syntax"
)

// A digest of a Secret tells what it holds to whoever can guess: passwords and PINs are
// few enough to try all of them. So every digest of what a Secret holds, or may hold, is
// made with a key that only those know who may read the Secret.

const (
	// SaltAnnotation is the annotation of an engine's Secret with the key of its digests.
	SaltAnnotation = "operetta.dev/salt"
	// DigestAnnotation is the annotation by which a package reads the digest of what a
	// Secret or a ConfigMap holds, in live and in inputs. No cluster has it.
	DigestAnnotation = "operetta.dev/digest"
	// FixedSalt stands for the salt in dry runs. What is made with it says nothing.
	FixedSalt = "00000000000000000000000000000000"
)

// digestLength is how many bytes of a digest are kept.
const digestLength = 8

// NoDigest is the digest of a Secret that has no key, as in a dry run.
var NoDigest = strings.Repeat("0", 2*digestLength)

// Digest returns a short digest of data: by a key, so that whoever does not know it
// cannot try what the data may be, or, with "", plainly. It errors when the data cannot
// be encoded; encoding/json sorts keys.
func Digest(key string, data any) (string, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return "", fmt.Errorf("encoding what a digest is made of: %w", err)
	}
	hash := sha256.New()
	if key != "" {
		hash = hmac.New(sha256.New, []byte(key))
	}
	hash.Write(text)
	return hex.EncodeToString(hash.Sum(nil)[:digestLength]), nil
}

// KeyOf returns what the digests of a live Secret of the package's own are made with: its
// salt, or else what they are with an input.
func KeyOf(object map[string]any) string {
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	if salt := text(annotations[SaltAnnotation]); salt != "" && object["kind"] == secretKind {
		return salt
	}
	return InputKeyOf(object)
}

// InputKeyOf returns what the digests of a Secret are made with that the package reads:
// its UID, which no more people know than may read the Secret. It is "" for other kinds,
// and for what is on no cluster.
func InputKeyOf(object map[string]any) string {
	meta, _ := object["metadata"].(map[string]any)
	uid := text(meta["uid"])
	if uid == "" || object["kind"] != secretKind {
		return ""
	}
	return "uid " + uid
}

// dataFields are the fields of Secrets and ConfigMaps that hold what they are for.
var dataFields = []string{"data", "binaryData", "stringData"}

// dataDigest returns the digest of what an object holds, by a key if it is a Secret, or ""
// for one that is neither that nor a ConfigMap.
func dataDigest(object map[string]any, key string) string {
	if object["apiVersion"] != "v1" || object["kind"] != secretKind && object["kind"] != "ConfigMap" {
		return ""
	}
	if object["kind"] == secretKind && (key == "" || key == FixedSalt) {
		return NoDigest
	}
	held := map[string]any{"purpose": "data"} // no manifest has the same digest
	for _, field := range dataFields {
		if v, ok := object[field].(map[string]any); ok && len(v) > 0 {
			held[field] = v
		}
	}
	digest, err := Digest(key, held)
	if err != nil {
		return ""
	}
	return digest
}

// digested returns an object with the digest of what it holds among its annotations.
func digested(object map[string]any, key string) map[string]any {
	digest := dataDigest(object, key)
	if digest == "" {
		return object
	}
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations[DigestAnnotation] = digest
	out := maps.Clone(object)
	out["metadata"] = with(meta, "annotations", annotations)
	return out
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

// digested returns a session in which every object has the digest of what it holds, if
// the package refers to any. It comes before the secrets are taken out of a session: what
// rests on a digest may be said.
func (p *Program) digested(s Session) Session {
	if !p.digests {
		return s
	}
	return s.withObjects(func(_, _ string, object map[string]any) map[string]any {
		return digested(object, KeyOf(object))
	}, func(object map[string]any) map[string]any {
		return digested(object, InputKeyOf(object))
	})
}

// refersToDigests reports whether one of some references may lead to a digest.
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
