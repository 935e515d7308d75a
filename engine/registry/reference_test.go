package registry

import "testing"

func TestAReferenceIsCheckedBeforeAnybodyIsAsked(t *testing.T) {
	t.Parallel()
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for reference, row := range map[string]struct {
		reason, digest string
		ok             bool
	}{
		"registry.test/a/b:v1.0.0":               {"a tag", "", true},
		"registry.test:5000/a/b@" + digest:       {"a digest", digest, true},
		"registry.test/a/b":                      {"a digest beside it", digest, true},
		"registry.test/a/c":                      {"neither a tag nor a digest", "", false},
		"a/b:v1.0.0":                             {"no host: nobody guesses one", "", false},
		"https://registry.test/a/b:v1.0.0":       {"a URL", "", false},
		"user:pw@registry.test/a/b:v1.0.0":       {"credentials would be in the status", "", false},
		"registry.test/a/b:v1@sha256:abc":        {"no digest", "", false},
		"registry.test/a/d:v1.0.0":               {"a digest that is none", "md5:abc", false},
		"registry.test/a/../b:v1.0.0":            {"a path", "", false},
		"registry.test/a/e@" + digest[:70] + "0": {"two digests", digest, false},
	} {
		if _, err := parse(reference, row.digest); (err == nil) != row.ok {
			t.Errorf("%s: %s: %v", reference, row.reason, err)
		}
	}
}
