package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"operetta.dev/engine/ownership"
	"operetta.dev/engine/program"
)

// The digests of what a Secret holds are made with keys: the own Secrets of a resource
// have a salt, which is chosen once and kept in an annotation; the Secrets that a package
// reads have their UID. An object that is no Secret and may rest on some has a key made
// of theirs, so that it lives as long as they do, whether the object is there or not.

// Salts knows the salts of the Secrets of one resource. It is safe for concurrent use.
type Salts interface {
	// Salt returns the salt of a Secret, by component and object: the one that it has on
	// the cluster, or, if that is "", one that stays the same from then on.
	Salt(component, object, live string) string
	// Input returns the keys of the Secrets that an input has found or, if it finds none
	// now, of those that it found last: what rests on a Secret that is gone is still
	// recognised as what was last applied, and so is repaired while it waits.
	Input(name string, found []string) []string
}

// saltOf returns the salt that a Secret has or is given.
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

// keyOf returns what the digests of an object of a component are made with, or "" if it
// rests on no Secret.
func (ev *evaluated) keyOf(component string, o program.Object) string {
	if isSecret(o) {
		return ev.saltOf(component, o.Name)
	}
	return combined(ev.keysBehind(o))
}

// keyOfHook returns what the names of a hook's objects are made with, or "" if none of
// them is a Secret or rests on one.
func (ev *evaluated) keyOfHook(c program.Component) string {
	var keys []string
	for _, o := range c.Objects {
		if isSecret(o) {
			keys = append(keys, ev.saltOf(c.Name, o.Name))
		}
		keys = append(keys, ev.keysBehind(o)...)
	}
	return combined(keys)
}

func isSecret(o program.Object) bool { return o.Identity.Kind == "Secret" }

// keysBehind returns the keys of the Secrets that an object may rest on, as far as they
// are there.
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

// ownKey returns the key of an own Secret that an object rests on. One that has no salt
// may never get one, such as one that is only ever created.
func (ev *evaluated) ownKey(ref program.SecretRef) string {
	live := ev.live[ref.Component][ref.Object]
	if c, _ := ev.component(ref.Component); live == nil && slices.ContainsFunc(c.Objects, func(o program.Object) bool { return o.Name == ref.Object && isSecret(o) }) {
		return ev.saltOf(ref.Component, ref.Object)
	}
	if live == nil || live.GetKind() != "Secret" {
		return ""
	}
	if salt := ownership.SaltOf(live); salt != "" {
		return salt
	}
	return program.InputKeyOf(live.Object)
}

// combined returns one key made of several, or "" of none.
func combined(keys []string) string {
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == "" })
	if len(keys) == 0 {
		return ""
	}
	slices.Sort(keys)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(keys), "\n")))
	return hex.EncodeToString(sum[:])
}
