package signature_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"operetta.dev/engine/signature"
	"operetta.dev/test/registrytest"
)

// ofCosign returns what cosign has signed, by the names of the files.
func ofCosign(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("testdata/cosign.txtar")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range txtar.Parse(data).Files {
		out[f.Name] = strings.TrimSuffix(string(f.Data), "\n")
	}
	return out
}

// artifact returns an artifact that cosign has signed.
func artifact(t *testing.T, text string) signature.Artifact {
	t.Helper()
	var out signature.Artifact
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func parseKeys(t *testing.T, texts ...string) signature.Keys {
	t.Helper()
	out, err := signature.ParseKeys(texts)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatCosignHasSignedIsValid(t *testing.T) {
	t.Parallel()
	f := ofCosign(t)
	keys := parseKeys(t, registrytest.NewKey(t).Public, f["cosign.pub"])
	if result, id := keys.Payload(artifact(t, f["atag/artifact.json"]), []byte(f["atag/payload.json"]), f["atag/signature"]); result != signature.Valid || id != keys[1].ID {
		t.Errorf("the signature below a tag %s, by %q", result, id)
	}
	if result, id := keys.Bundle(artifact(t, f["abundle/artifact.json"]), []byte(f["abundle/bundle.json"])); result != signature.Valid || id != keys[1].ID {
		t.Errorf("the bundle %s, by %q", result, id)
	}
	// Each of the two is for one artifact.
	if result, _ := keys.Payload(artifact(t, f["abundle/artifact.json"]), []byte(f["atag/payload.json"]), f["atag/signature"]); result != signature.OtherDigest {
		t.Errorf("for another artifact, the signature %s", result)
	}
	if result, _ := keys.Bundle(artifact(t, f["atag/artifact.json"]), []byte(f["abundle/bundle.json"])); result != signature.OtherDigest {
		t.Errorf("for another artifact, the bundle %s", result)
	}
	if result, _ := (signature.Keys{}).Bundle(artifact(t, f["abundle/artifact.json"]), []byte(f["abundle/bundle.json"])); result != signature.OtherKey {
		t.Errorf("without any key, the bundle %s", result)
	}
}

func TestTheKeyOfCosignSignsWithItsPassword(t *testing.T) {
	t.Parallel()
	f := ofCosign(t)
	for _, password := range []string{"", "wrong", "of-the-test "} {
		if _, err := signature.ParseSigner([]byte(f["cosign.key"]), []byte(password)); !errors.Is(err, signature.ErrPassword) {
			t.Errorf("password %q: %v", password, err)
		}
	}
	signer, err := signature.ParseSigner([]byte(f["cosign.key"]), []byte("of-the-test"))
	if err != nil {
		t.Fatal(err)
	}
	of := artifact(t, f["atag/artifact.json"])
	text, made, err := signer.Sign(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f["atag/payload.json"], string(text)); diff != "" {
		t.Errorf("the payload is not that of cosign (-cosign +operetta):\n%s", diff)
	}
	if result, _ := parseKeys(t, f["cosign.pub"]).Payload(of, text, made); result != signature.Valid {
		t.Errorf("the signature %s", result)
	}
}

func TestKeysThatCannotBeUsedAreRefusedAndNotQuoted(t *testing.T) {
	t.Parallel()
	key, f := registrytest.NewKey(t), ofCosign(t)
	secret := strings.Split(key.Private, "\n")[1]
	for name, tc := range map[string]struct {
		reason, text, says string
		signs              bool
	}{
		"Private":      {"somebody has taken the wrong file", key.Private, "not a public key", false},
		"Encrypted":    {"or the one that is encrypted", f["cosign.key"], "not a public key", false},
		"Two":          {"the second would count for nothing", key.Public + registrytest.NewKey(t).Public, "more than one key", false},
		"Text":         {"it is no key", "ssh-ed25519 AAAA", "not a public key in PEM form", false},
		"Empty":        {"a file may be empty", "", "not a public key in PEM form", false},
		"Small":        {"a key of 1024 bits can be broken", smallKey, "an RSA key of 1024 bits", false},
		"Public":       {"nobody signs with a public key", key.Public, `it is "PUBLIC KEY"`, true},
		"NotPEM":       {"it is no key", "x", "not a private key in PEM form", true},
		"BrokenPKCS8":  {"the form is not the one that it says", strings.Replace(key.Private, "MIGH", "AAAA", 1), "not a private key in the form of PKCS #8", true},
		"OtherPrivate": {"it is that of another program", strings.ReplaceAll(key.Private, "PRIVATE KEY", "OPENSSH PRIVATE KEY"), "OPENSSH PRIVATE KEY", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := signature.ParseKey(tc.text)
			if tc.signs {
				_, err = signature.ParseSigner([]byte(tc.text), nil)
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.says)
			}
		})
	}
}

// smallKey is an RSA key of 1024 bits.
const smallKey = `-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDB2rSUhmf5+oDGyv0CwTGEz4lr
TRrRMxrpsUyKLESSt/7M0SjE7OoCyXMNMFbkE8kNb6nx9tgXlRvwc/ZLFQ5TiCY3
Xr5LfW2KFpGFkkVUz5WDQF4xR06QXOWNxZKWJb+tVP0R0yPmZ0PTJw9mhC5mC0Xg
Ih8K2NHRwKzX6g2C1QIDAQAB
-----END PUBLIC KEY-----
`

func TestTheFirstRuleOfAPolicyThatMatchesDecides(t *testing.T) {
	t.Parallel()
	first, second := registrytest.NewKey(t), registrytest.NewKey(t)
	indented := func(k registrytest.Key) string {
		return strings.ReplaceAll(strings.TrimSpace(k.Public), "\n", "\n    ")
	}
	p, err := signature.ParsePolicy([]byte(`
repositories:
- match: registry.test/prod/*
  keys:
  - |
    ` + indented(first) + `
- match: registry.test/**
  keys:
  - |
    ` + indented(second) + `
- match: "*.sandbox.test:5000/**"
  unsigned: Allow
`))
	if err != nil {
		t.Fatal(err)
	}
	one, two := parseKeys(t, first.Public)[0].ID, parseKeys(t, second.Public)[0].ID
	for repository, want := range map[string]string{
		"registry.test/prod/shop":            one,
		"registry.test/prod/shop/more":       two,
		"registry.test/prod":                 two,
		"registry.test/a/b/c":                two,
		"registry.test":                      "refused", // no repository
		"registry.test.evil/prod/shop":       "refused",
		"evil/registry.test/prod/shop":       "refused",
		"a.sandbox.test:5000/x":              "nothing",
		"a.b.sandbox.test:5000/x":            "nothing", // a host is one part
		"a.sandbox.test:5001/x":              "refused",
		"a.sandbox.test/x":                   "refused",
		"evil.test/a.sandbox.test:5000/x":    "refused",
		"REGISTRY.TEST/prod/shop":            "refused",
		"registry.test./prod/shop":           "refused",
		"registry.test:443/prod/shop":        "refused",
		"registry.test/prod/":                one, // what is no reference is refused before
		"registry.test//shop":                two,
		"registry.test/prod/../sandbox/shop": two,
	} {
		got := "nothing"
		switch demand, keys := p.ForRepository(repository); demand {
		case signature.Nothing:
		case signature.Signed:
			got = keys[0].ID
		case signature.Refused:
			got = "refused"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", repository, got, want)
		}
	}
	if p.OfObjects() != signature.Refused {
		t.Error("a policy that says nothing about objects of the cluster allows them")
	}
	var none *signature.Policy
	if demand, _ := none.ForRepository("any.test/x"); demand != signature.Nothing || none.OfObjects() != signature.Nothing {
		t.Error("without a policy, something is demanded")
	}
}

func TestAPolicyThatSaysNothingOrTwoThingsIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, text, says string }{
		"Empty":       {"a file without rules is a mistake", "", "it has no repositories"},
		"Unknown":     {"what is not known might restrict something", "repositories: [{match: a/b, unsigned: Allow}]\nexpires: 2027-01-01\n", "unknown field"},
		"UnknownRule": {"also within a rule", "repositories: [{match: a/b, unsigned: Allow, keyless: true}]\n", "unknown field"},
		"NoKeys":      {"a rule without keys would be met by nothing, or by anything", "repositories: [{match: a/b}]\n", "repositories[0]: it has either keys or unsigned"},
		"NoKey":       {"the same", "repositories: [{match: a/b, keys: []}]\n", "either keys or unsigned"},
		"Both":        {"it says two things", "repositories: [{match: a/b, unsigned: Allow, keys: [x]}]\n", "repositories[0]: key 1"},
		"Word":        {"there is one word", "repositories: [{match: a/b, unsigned: \"yes\"}]\n", `"yes" is not Allow`},
		"NoMatch":     {"it is about nothing", "repositories: [{unsigned: Allow}]\n", "is no pattern"},
		"Middle":      {"it would not mean what it seems to", "repositories: [{match: a/**/b, unsigned: Allow}]\n", "is no pattern"},
		"Bracket":     {"it never matches", "repositories: [{match: \"a/[\", unsigned: Allow}]\n", "is no pattern"},
		"Others":      {"there are two words", "repositories: [{match: a/b, unsigned: Allow}]\notherSources: maybe\n", `"maybe" is neither Allow nor Refuse`},
		"Twice":       {"one of them would be lost", "repositories: []\nrepositories: [{match: a/b, unsigned: Allow}]\n", "already set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := signature.ParsePolicy([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.says)
			}
		})
	}
}

// FuzzBundle feeds what a registry may send.
func FuzzBundle(f *testing.F) {
	data, err := os.ReadFile("testdata/cosign.txtar")
	if err != nil {
		f.Fatal(err)
	}
	var keys signature.Keys
	for _, file := range txtar.Parse(data).Files {
		if file.Name == "cosign.pub" {
			if keys, err = signature.ParseKeys([]string{string(file.Data)}); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		of := signature.Artifact{Repository: "registry.test/a", Digest: "sha256:0"}
		if result, _ := keys.Bundle(of, data); result == signature.Valid {
			t.Error("a bundle for another digest is valid")
		}
		if result, _ := keys.Payload(of, data, string(data)); result == signature.Valid {
			t.Error("a payload for another digest is valid")
		}
	})
}
