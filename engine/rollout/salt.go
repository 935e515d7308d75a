package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"operetta.dev/engine/object"
	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

// A digest of what a Secret holds is made with a key, or its content could be guessed. The key of
// a resource's own Secret is a salt, which is chosen once and kept in an annotation; that of a
// Secret that the package reads is its UID. The key of another object that may contain parts of
// Secrets is made of their keys, so it stays the same as long as they exist.

// Salts has the salts of the Secrets of one resource. It is safe for concurrent use.
type Salts interface {
	// Salt returns the salt of a Secret, by component and object: the live one, or if that is
	// "", one that stays the same from then on.
	Salt(component, object, live string) string
	// Input returns the keys of the Secrets that an input has found or, if it finds none now,
	// those that it found last: an object that was made from a Secret that is gone is still
	// known by its digest, and so its drift is repaired while it waits.
	Input(name string, found []string) []string
}

// saltOf returns the salt of a Secret.
func (obs *observed) saltOf(component, object string) string {
	live := ownership.SaltOf(obs.live[component][object])
	if obs.in.Salts != nil {
		return obs.in.Salts.Salt(component, object, live)
	}
	if live != "" {
		return live
	}
	return program.FixedSalt
}

// keyOf returns the key of the digests of an object, or "" if it contains nothing of a Secret.
func (ev *evaluated) keyOf(component string, o program.Object) string {
	if mayBeSecret(o) {
		return ev.saltOf(component, o.Name)
	}
	return combined(ev.keysBehind(o))
}

// keyOfHook returns the key of the names of a hook's objects, or "" if they contain nothing of a
// Secret.
func (ev *evaluated) keyOfHook(c program.Component) string {
	var keys []string
	for _, o := range c.Objects {
		if mayBeSecret(o) {
			keys = append(keys, ev.saltOf(c.Name, o.Name))
		}
		keys = append(keys, ev.keysBehind(o)...)
	}
	return combined(keys)
}

func mayBeSecret(o program.Object) bool { return object.MayBeSecret(o.Identity.Kind) }

// keysBehind returns the keys of the Secrets of which an object may contain parts, as far as they
// exist.
func (ev *evaluated) keysBehind(o program.Object) []string {
	var out []string
	for _, ref := range o.Secrets {
		if ref.Input == "" {
			out = append(out, ev.ownKey(ref))
			continue
		}
		var found []string
		for _, object := range ev.found[ref.Input].Objects {
			found = append(found, program.InputKeyOf(object))
		}
		if ev.in.Salts != nil {
			found = ev.in.Salts.Input(ref.Input, found)
		}
		out = append(out, found...)
	}
	return out
}

// ownKey returns the key of a Secret of the resource: its UID if it exists without a salt, which
// it may never get, such as one with the policy createOnly.
func (ev *evaluated) ownKey(ref program.SecretRef) string {
	live := ev.live[ref.Component][ref.Object]
	if c, _ := ev.component(ref.Component); live == nil && slices.ContainsFunc(c.Objects, func(o program.Object) bool { return o.Name == ref.Object && mayBeSecret(o) }) {
		return ev.saltOf(ref.Component, ref.Object)
	}
	if live == nil || !object.MayBeSecret(live.GetKind()) {
		return ""
	}
	if salt := ownership.SaltOf(live); salt != "" {
		return salt
	}
	return program.InputKeyOf(live.Object)
}

// combined returns one key made of several, or "" if there are none.
func combined(keys []string) string {
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == "" })
	if len(keys) == 0 {
		return ""
	}
	slices.Sort(keys)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(keys), "\n")))
	return hex.EncodeToString(sum[:])
}
