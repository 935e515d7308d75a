package plan

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/redact"
)

// lastApplied is the annotation in which kubectl keeps a copy of the manifest. No plan reads it.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// standIns replace the values of Secrets in a dump: equal values by equal texts, from which nobody learns the
// values, because the key of a dump is thrown away. What other objects repeat of a Secret is replaced by a
// mask, as in everything else that leaves the engine.
type standIns struct {
	key   []byte
	known *redact.Redactor
	// needed redacts what a plan finds objects by, where a common word stays.
	needed *redact.Redactor
	// selectors are the labels, as "name=value", by which objects are selected.
	selectors map[string]bool
	// guessable are the digests of the manifests that repeat a value of a Secret: they have no key, and whoever
	// knows the rest of a manifest could guess the value.
	guessable map[string]bool
	// uids replace the UIDs of Secrets: they are the keys of digests, of what a package reads of a Secret.
	uids *strings.Replacer
}

// newStandIns returns what replaces the values of the Secrets among objects.
func newStandIns(objects []*unstructured.Unstructured, lists map[string]bool) *standIns {
	out := &standIns{key: make([]byte, sha256.Size), known: redact.NewStrict(), needed: redact.New(), selectors: map[string]bool{}, guessable: map[string]bool{}}
	_, _ = rand.Read(out.key) // it never errors
	for _, u := range objects {
		out.known.Add(u.Object)
		out.needed.Add(u.Object)
	}
	for selection := range lists {
		for part := range strings.SplitSeq(selection, "|") {
			out.selectors[part] = true
		}
	}
	out.uids = strings.NewReplacer(out.otherUIDs(objects)...)
	for _, u := range objects {
		if digest := u.GetAnnotations()[ownership.AppliedAnnotation]; digest != "" && !object.MayBeSecret(u.GetKind()) && out.repeats(u) {
			out.guessable[digest] = true
		}
	}
	return out
}

// repeats reports whether an object repeats a value of a Secret.
func (s *standIns) repeats(u *unstructured.Unstructured) bool {
	return !equality.Semantic.DeepEqual(u.Object, s.redacted(u.DeepCopy().Object))
}

// mac returns a code for a value that cannot be computed without the key.
func (s *standIns) mac(value string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(value))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// of returns what stands in for a value of a Secret.
func (s *standIns) of(value string) string { return standInPrefix + s.mac(value) }

// publicUID is how many characters of a UID an inventory has, and so stay: an object is known by them.
const publicUID = 8

// otherUIDs returns the UIDs of the Secrets among objects, each with what stands in for it behind it.
func (s *standIns) otherUIDs(objects []*unstructured.Unstructured) []string {
	var out []string
	for _, u := range objects {
		uid := string(u.GetUID())
		if !object.MayBeSecret(u.GetKind()) || len(uid) <= publicUID { // no API server gives one that is as short
			continue
		}
		m := s.mac(uid)
		out = append(out, uid, strings.Join([]string{uid[:publicUID], m[:4], m[4:8], m[8:12], m[12:24]}, "-"))
	}
	return out
}

// line returns the line of an object in a dump.
func (s *standIns) line(u *unstructured.Unstructured) ([]byte, error) {
	line, err := utiljson.Marshal(s.object(u).Object)
	if err != nil {
		return nil, err
	}
	return []byte(s.uids.Replace(string(line))), nil // wherever it is: an owner reference and its managed field have it, too
}

// object returns an object as a dump holds it.
func (s *standIns) object(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	annotations := out.GetAnnotations()
	delete(annotations, lastApplied)
	delete(annotations, ownership.SaltAnnotation) // with it, the digest of a Secret would tell a value that is guessed
	if s.guessable[annotations[ownership.AppliedAnnotation]] {
		delete(annotations, ownership.AppliedAnnotation)
	}
	out.SetAnnotations(annotations)
	if object.MayBeSecret(out.GetKind()) {
		s.secret(out)
	}
	return &unstructured.Unstructured{Object: s.redacted(out.Object)}
}

// secret replaces the values of a Secret.
func (s *standIns) secret(u *unstructured.Unstructured) {
	data := map[string]any{}
	switch all := u.Object["data"].(type) {
	case nil:
		data = nil
	case map[string]any:
		for name, value := range all {
			text, isText := value.(string)
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil && isText {
				text = string(plain)
			}
			data[name] = base64.StdEncoding.EncodeToString([]byte(s.of(text)))
		}
	}
	if delete(u.Object, "data"); data != nil {
		u.Object["data"] = data
	}
	texts, _ := u.Object["stringData"].(map[string]any)
	for name, value := range texts {
		text, _ := value.(string)
		texts[name] = s.of(text)
	}
	if _, is := u.Object["stringData"]; is && texts == nil {
		delete(u.Object, "stringData")
	}
}

// identifying are the fields of the metadata by which an object and its owners are known. They are public, and a
// value of a Secret may be the same word.
var identifying = []string{"name", "namespace", "uid", "ownerReferences", "labels", "managedFields", "creationTimestamp", "deletionTimestamp", "finalizers", "resourceVersion"}

// redacted returns an object in which a mask replaces what it repeats of Secrets.
func (s *standIns) redacted(content map[string]any) map[string]any {
	out := map[string]any{}
	for field, value := range content {
		switch field {
		case "apiVersion", "kind":
			out[field] = value
		case "metadata":
			out[field] = s.metadata(value, object.MayBeSecretIn(content))
		case "status":
			out[field] = s.status(value)
		case "data", "stringData":
			if object.MayBeSecretIn(content) {
				out[field] = value // stand-ins, and the names of fields, which packages read
				continue
			}
			out[field] = s.known.Data(value)
		default:
			out[field] = s.known.Data(value)
		}
	}
	return out
}

// metadata is redacted for the metadata of an object.
func (s *standIns) metadata(value any, ofSecret bool) any {
	all, isMap := value.(map[string]any)
	if !isMap {
		return s.known.Data(value)
	}
	out := maps.Clone(all)
	for _, field := range identifying {
		delete(out, field)
	}
	out, _ = s.known.Data(out).(map[string]any)
	for _, field := range identifying {
		if v, has := all[field]; has {
			out[field] = v
		}
	}
	if labels, has := out["labels"].(map[string]any); has {
		out["labels"] = s.labels(labels)
	}
	if managers, has := out["managedFields"].([]any); has {
		out["managedFields"] = s.managers(managers, ofSecret)
	}
	return out
}

// labels is redacted for labels, except for those of the engine.
func (s *standIns) labels(all map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range all {
		text, _ := value.(string)
		switch {
		case name == ownership.OwnerLabel:
			out[name] = value
		case s.selectors[name+"="+text]:
			out[name] = s.needed.Data(value)
		default:
			out[s.known.Text(name)] = s.known.Data(value)
		}
	}
	return out
}

// managers is redacted for who owns which field.
func (s *standIns) managers(all []any, ofSecret bool) []any {
	out := make([]any, len(all))
	for i, m := range all {
		out[i] = m
		manager, isMap := m.(map[string]any)
		fields, has := manager["fieldsV1"].(map[string]any)
		if !isMap || !has {
			continue
		}
		clone, redacted := maps.Clone(manager), map[string]any{}
		for key, value := range fields { // the fields of an object are public, as in redacted
			redacted[key] = value
			if isContent := key == "f:data" || key == "f:stringData"; !isContent || !ofSecret {
				redacted[key] = s.fields(value)
			}
		}
		clone["fieldsV1"], out[i] = redacted, clone
	}
	return out
}

// fields leaves out the keys of a set of fields that repeat a value of a Secret, as fields, as values of sets or as
// keys of lists: there is no such value any more in the object.
func (s *standIns) fields(value any) any {
	all, isMap := value.(map[string]any)
	if !isMap {
		return value
	}
	out := map[string]any{}
	for key, v := range all {
		if !s.names(key) {
			out[key] = s.fields(v)
		}
	}
	return out
}

// names reports whether a key of a set of fields repeats a value of a Secret.
func (s *standIns) names(key string) bool {
	kind, text, _ := strings.Cut(key, ":")
	var data any
	if kind == "f" || json.Unmarshal([]byte(text), &data) != nil {
		return s.known.Text(text) != text
	}
	return !reflect.DeepEqual(data, s.known.Data(data))
}

// status is redacted for a status, whose inventory names objects.
func (s *standIns) status(value any) any {
	all, isMap := value.(map[string]any)
	if !isMap {
		return s.known.Data(value)
	}
	out, _ := s.known.Data(all).(map[string]any)
	if inventory, has := all["inventory"]; has {
		out["inventory"] = s.inventory(inventory)
	}
	return out
}

// inventory is redacted for an inventory: its names and digests are public, and the last states of finished objects
// are not.
func (s *standIns) inventory(value any) any {
	groups, isList := value.([]any)
	if !isList {
		return s.known.Data(value)
	}
	for _, g := range groups {
		group, _ := g.(map[string]any)
		objects, _ := group["objects"].([]any)
		for _, o := range objects {
			entry, _ := o.(map[string]any)
			if last, has := entry["last"]; has {
				entry["last"] = s.known.Data(last)
			}
			if digest, _ := entry["digest"].(string); s.guessable[digest] {
				delete(entry, "digest")
				delete(entry, "content") // it is the digest of a part of the manifest
			}
		}
	}
	return groups
}
