package compile

import (
	"slices"
	"strings"

	"operetta.dev/engine/template"
)

// An evaluation hides each message that an evaluation with other values in the place of the secret ones
// does not have. A template evaluates once. So what its messages say, and which messages there
// are, must not rest on a secret at all, and whatever rests on one must have a value for every
// secret: an error would be one more message.

// keepsSecrets errors if a secret may decide about a message of a template.
func (u *unit) keepsSecrets(t *Template, h *holes) error {
	s := u.session
	for i, path := range leavesIn(h) {
		s = withValue(s, path, func(was any) any { return longer(i, was) })
	}
	secret := map[string]bool{}
	for _, path := range u.program.SecretLeaves(s, u.want) {
		key := strings.Join(path, separator)
		if _, ok := h.paths[key]; !ok {
			return untranslatedf(strings.Join(path, "."), "a secret decides about the form")
		}
		secret[key] = true
		if path[0] == "cr" {
			t.SecretSpec = append(t.SecretSpec, strings.Join(path, "."))
		}
	}
	slices.Sort(t.SecretSpec)
	if len(secret) == 0 {
		return nil
	}
	for _, n := range t.nodes() {
		if *n != nil && restsOnSecret(*n, secret) && !t.mayRestOnSecret(n) {
			return untranslatedf("", "a secret decides about a message")
		}
	}
	return nil
}

// longer returns a value that counts as secret if its place is one.
func longer(i int, was any) any {
	if _, ok := was.(string); ok {
		return distinct(i, was)
	}
	return int64(1_000_000 + i)
}

func restsOnSecret(n *template.Node, secret map[string]bool) bool {
	return slices.ContainsFunc(n.References(), func(path []string) bool {
		key := strings.Join(path, separator)
		return secret[key]
	})
}

// total are the operations that have a value for every text.
var total = []string{
	"interpolation", "+", "base64.Encode", "hex.Encode", "sha256.Sum256", "sha512.Sum512", "sha1.Sum", "md5.Sum",
	"strings.ToLower", "strings.ToUpper", "strings.TrimSpace", "strings.TrimSuffix", "strings.TrimPrefix",
}

// lengths are the operations that secrets of the resource pass if their replacements do: those have
// the same length.
var lengths = []string{"strings.MinRunes", "strings.MaxRunes", "&&"}

// mayRestOnSecret reports whether the node in a place may rest on a secret: the content and
// the status, and what guards the length of a value.
func (t *Template) mayRestOnSecret(at **template.Node) bool {
	only := func(of []string) bool {
		return !slices.ContainsFunc((*at).Operations(), func(name string) bool { return !slices.Contains(of, name) })
	}
	if slices.Contains(t.guardPlaces(), at) {
		return only(lengths) && !slices.ContainsFunc((*at).References(), func(path []string) bool { return path[0] != "cr" })
	}
	for i := range t.Components {
		for j := range t.Components[i].Objects {
			if at == &t.Components[i].Objects[j].Content {
				return only(total)
			}
		}
	}
	for i := range t.Status {
		if at == &t.Status[i].Value {
			return only(total)
		}
	}
	return false
}
