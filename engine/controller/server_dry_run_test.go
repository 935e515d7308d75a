package controller

import (
	"testing"

	"operetta.dev/engine/object"
	"operetta.dev/engine/program"
)

func TestADryRunActsAsOneAccount(t *testing.T) {
	t.Parallel()
	first, second := load(t, "first", "First"), load(t, "second", "Second")
	both := map[string]object.Account{"first": shopAccount, "second": shopAccount}
	for name, row := range map[string]struct {
		reason   string
		accounts map[string]object.Account
		programs []*program.Program
		want     object.Account
		wrong    bool
	}{
		"nobody":           {"as ever", nil, []*program.Program{first, second}, object.Account{}, false},
		"the same":         {"both have it", both, []*program.Program{first, second}, shopAccount, false},
		"one and nobody":   {"the one must not use the rights of the person", map[string]object.Account{"first": shopAccount}, []*program.Program{first, second}, object.Account{}, true},
		"another package":  {"it does not run", both, []*program.Program{second}, shopAccount, false},
		"nothing to do":    {"there is no package", both, nil, object.Account{}, false},
		"nobody and one":   {"in any order", map[string]object.Account{"second": shopAccount}, []*program.Program{first, second}, object.Account{}, true},
		"a flag of others": {"it concerns none of them", map[string]object.Account{"third": shopAccount}, []*program.Program{first}, object.Account{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := oneAccount(row.accounts, row.programs)
			if got != row.want || (err != nil) != row.wrong {
				t.Errorf("%s: it is %q (error %v)", row.reason, got, err)
			}
		})
	}
	if _, err := NewServerDryRun(away, Options{Accounts: both}, first, second); err != nil {
		t.Error(err)
	}
}
