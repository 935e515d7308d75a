package object

import "testing"

func TestAnAccountIsNamespaceAndName(t *testing.T) {
	t.Parallel()
	for text, row := range map[string]struct {
		reason string
		user   string
	}{
		"team-a/shop":     {"both are there", "system:serviceaccount:team-a:shop"},
		"team-a/shop.v1":  {"a name may have dots", "system:serviceaccount:team-a:shop.v1"},
		"shop":            {"no namespace is guessed", ""},
		"/shop":           {"the namespace is empty", ""},
		"team-a/":         {"the name is empty", ""},
		"team-a/b/c":      {"there is a third part", ""},
		"team-a/x:y":      {"a colon would make it an account of another namespace", ""},
		"kube-system:a/b": {"a colon would make it an account of another namespace", ""},
		"team-a/Shop":     {"no account has such a name", ""},
		"team-a/system:x": {"no account has such a name", ""},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			a, err := ParseAccount(text)
			if (err == nil) != (row.user != "") || err == nil && a.User() != row.user {
				t.Errorf("%s: it is %q (error %v)", row.reason, a.User(), err)
			}
			if err == nil && a.String() != text {
				t.Errorf("%s: it reads %q", row.reason, a)
			}
		})
	}
}
