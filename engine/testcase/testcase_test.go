package testcase_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"operetta.dev/engine/fault"
	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
	"operetta.dev/engine/testcase"
)

// shop is the package of these tests.
const shop = `package shop
import "operetta.dev/schemas/operator"
operator.#Controller
group: "example.com", kind: "Shop"
versions: v1: spec: #Spec
#Spec: {name!: string, size: int & <=9 | *1, open: bool | *true, password: string | *"swordfish"}
cr: spec: #Spec
live: _
inputs: token: {apiVersion: "v1", kind: "ConfigMap", name: "token"}
config: greeting: string | *"hello"
components: data: objects: {
	cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "shop", data: {name: cr.spec.name, size: "\(cr.spec.size)", greeting: config.greeting}}
	secret: {apiVersion: "v1", kind: "Secret", metadata: name: "shop", stringData: password: cr.spec.password}
	list: {apiVersion: "v1", kind: "Service", metadata: name: "shop", spec: ports: [{port: 80, name: "a"}, {port: 81, name: "b"}]}
}
components: door: {
	when: cr.spec.open
	dependsOn: data: until: "applied"
	objects: cm: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "door", data: token: inputs.token.object.data.token}
	verify: big: cr.spec.size >= 3
}
status: seen: *live.data.cm.data.seen | "never"
`

// TestATestSaysWhatIsDecidedOtherwise has each test of a package, by its fields, with what it says.
func TestATestSaysWhatIsDecidedOtherwise(t *testing.T) {
	t.Parallel()
	const given = `given: cr: spec: name: "ann"` + "\n"
	const token = `given: others: t: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "token", data: token: "T"}` + "\n"
	for name, c := range map[string]struct {
		test string
		want []string
	}{
		"only what is written is compared":         {given + `want: objects: data: cm: data: name: "ann"`, nil},
		"a value that is another one":              {given + `want: objects: data: cm: data: name: "bob"`, []string{`shop_test.cue:4: objects.data.cm.data.name: want "bob", got "ann"`}},
		"a default that is expected to be another": {given + `want: objects: data: cm: data: size: "2"`, []string{`shop_test.cue:4: objects.data.cm.data.size: want "2", got "1"`}},
		"a constraint that holds":                  {given + `want: objects: data: cm: data: name: =~"^a"`, nil},
		"a constraint that does not hold":          {given + `want: objects: data: cm: data: name: =~"^b"`, []string{`shop_test.cue:4: objects.data.cm.data.name: want =~"^b", got "ann"`}},
		"a field that is not there":                {given + `want: objects: data: cm: data: nme: "ann"`, []string{`shop_test.cue:4: objects.data.cm.data.nme: want "ann", and there is none, but greeting, name, size`}},
		"an object that is not there":              {given + `want: objects: data: pod: {}`, []string{`shop_test.cue:4: objects.data.pod: want a struct, and there is none, but cm, list, secret`}},
		"a list has each element":                  {given + `want: objects: data: list: spec: ports: [{port: 80}, {port: 81}]`, nil},
		"a list that is shorter":                   {given + `want: objects: data: list: spec: ports: [{port: 80}]`, []string{`shop_test.cue:4: objects.data.list.spec.ports: want 1 element, got 2: [{"name":"a","port":80},{"name":"b","port":81}]`}},
		"a list of which the beginning is wanted":  {given + `want: objects: data: list: spec: ports: [{port: 80}, ...]`, nil},
		"an element that is another":               {given + `want: objects: data: list: spec: ports: [{port: 80}, {port: 82}]`, []string{`shop_test.cue:4: objects.data.list.spec.ports[1].port: want 82, got 81`}},
		"the content of a Secret is not shown":     {given + `want: objects: data: secret: stringData: password: "hunter2"`, []string{`shop_test.cue:4: objects.data.secret.stringData.password: want other content, got content that is not shown`}},
		"nor where the whole of it is compared":    {given + `want: objects: data: secret: stringData: "hunter2"`, []string{`shop_test.cue:4: objects.data.secret.stringData: want other content, got content that is not shown`}},
		"a component that is excluded":             {`given: cr: spec: {name: "ann", open: false}` + "\n" + `want: {absent: door: true, components: door: state: "Excluded", verdicts: door: when: "False"}`, nil},
		"a component that should be absent":        {given + token + `want: absent: data: true`, []string{`shop_test.cue:5: absent.data: want no object, got cm, list, secret`}},
		"an object that should be absent":          {given + `want: absent: data: cm: true`, []string{`shop_test.cue:4: absent.data.cm: want no such object, got one`}},
		"a component that the package lacks":       {given + `want: absent: garden: true`, []string{`shop_test.cue:4: absent.garden: the package has no such component; it has data, door`}},
		"an object that the component never has":   {given + `want: absent: data: cmm: true`, []string{`shop_test.cue:4: absent.data.cmm: the component has no such object; it has cm, list, secret`}},
		"a pattern over components":                {given + token + `want: objects: [string]: cm: metadata: name: "shop"`, []string{`shop_test.cue:5: objects.door.cm.metadata.name: want "shop", got "door"`}},
		"a pattern that holds":                     {given + `want: objects: [=~"^da"]: [string]: metadata: name: "shop"`, nil},
		"a pattern over fields":                    {given + `want: objects: data: cm: data: [string]: =~"^[a-z]+$"`, []string{`shop_test.cue:4: objects.data.cm.data.size: want =~"^[a-z]+$", got "1"`}},
		"a pattern over elements":                  {given + `want: objects: data: list: spec: ports: [{port: 80}, ...{port: >90}]`, []string{`shop_test.cue:4: objects.data.list.spec.ports[1].port: want >90, got 81`}},
		"a field that may be there":                {given + `want: objects: data: cm: data: {size?: "7", other?: "x"}`, []string{`shop_test.cue:4: objects.data.cm.data.size: want "7", got "1"`}},
		"an input":                                 {given + token + `want: objects: door: cm: data: token: "T"`, nil},
		"a ConfigMap that is no input":             {given + `given: others: t: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "tokn"}` + "\n" + `want: {}`, []string{`shop_test.cue:3: given: ConfigMap default/tokn is neither an object of the resource nor an input`}},
		"an object of others without a version":    {given + `given: others: t: {kind: "ConfigMap", metadata: name: "token"}` + "\n" + `want: {}`, []string{`shop_test.cue:4: given.others.t: it has no apiVersion (an object of others needs apiVersion, kind and metadata.name, as in apiVersion: "v1")`}},
		"one with a content alone": {given + `given: others: "the token": data: token: "T"` + "\n" + `want: {}`, []string{
			`shop_test.cue:4: given.others."the token": it has no apiVersion (an object of others needs apiVersion, kind and metadata.name, as in apiVersion: "v1")`,
			`shop_test.cue:4: given.others."the token": it has no kind (an object of others needs apiVersion, kind and metadata.name, as in kind: "ConfigMap")`,
			`shop_test.cue:4: given.others."the token": it has no metadata.name (an object of others needs apiVersion, kind and metadata.name, as in metadata: name: "settings")`,
		}},
		"a live object":                          {given + `given: live: data: cm: data: seen: "now"` + "\n" + `want: status: seen: "now"`, nil},
		"a live object that is misspelled":       {given + `given: live: data: cmm: data: seen: "now"` + "\n" + `want: status: seen: "now"`, []string{`shop_test.cue:3: given: data.cmm is neither an object of the resource nor an input`, `shop_test.cue:5: status.seen: want "now", got "never"`}},
		"the configuration of the administrator": {given + `given: config: greeting: "hi"` + "\n" + `want: objects: data: cm: data: greeting: "hi"`, nil},
		"an edge":                                {given + `want: edges: door: data: until: "applied"`, nil},
		"an edge of another kind":                {given + `want: edges: door: data: until: "verified"`, []string{`shop_test.cue:4: edges.door.data.until: want "verified", got "applied"`}},
		"a verdict":                              {given + token + `want: verdicts: door: verify: big: "False"`, nil},
		"a resource that is invalid":             {`given: cr: spec: {name: "ann", size: 10}` + "\n" + `want: error: "size.*<=9"`, nil},
		"a fault that no test wants":             {`given: cr: spec: {name: "ann", size: 10}` + "\n" + `want: {}`, []string{`shop.cue:6: spec.size: invalid value 10 (out of bound <=9)`}},
		"a fault that does not come":             {given + `want: error: "size"`, []string{`shop_test.cue:4: error: want a fault that matches "size", got none`}},
		"a pattern that is none":                 {given + `want: error: "("`, []string{"shop_test.cue:3: want.error: error parsing regexp: missing closing ): `(`"}},
		"a given value that is not concrete":     {`given: cr: spec: name: string` + "\n" + `want: {}`, []string{`shop_test.cue:3: tests.t.given.cr.spec.name: required, but not set (must be string)`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			results := run(t, "package shop\n\ntests: t: {"+c.test+"}\n")
			for _, d := range results[0].Differences {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStepsAreTakenOneAfterTheOther has each part of a step, by its fields, with what it says.
func TestStepsAreTakenOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const given = `given: {cr: spec: {name: "ann", size: 3}, others: t: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "token", data: token: "T"}}` + "\n" + "want: {}\n"
	for name, c := range map[string]struct {
		steps string
		want  []string
	}{
		"the operator rolls out until it is done": {`{want: {ready: true, writes: {created: 4, updated: 0, deleted: 0}, live: door: cm: data: token: "T"}}`, nil},
		"what is wanted of a step has its number": {`{}, {want: ready: false}`, []string{`shop_test.cue:6: steps[1].ready: want false, got true`}},
		"one reconcile":                             {`{run: "once", want: {live: data: cm: {}, writes: created: 4}}`, nil},
		"nobody acts":                               {`{run: "never", want: {ready: false, live: data: cm: null}}`, []string{}},
		"a change of the resource":                  {`{}, {cr: spec: size: 4, want: {live: data: cm: data: size: "4", writes: {created: 0, updated: 1}}}`, nil},
		"a field that is removed":                   {`{}, {cr: spec: size: null, want: live: data: cm: data: size: "1"}`, nil},
		"a change that is invalid":                  {`{}, {cr: spec: size: 10, want: {error: "size.*<=9", live: data: cm: data: size: "3"}}`, nil},
		"a change that is invalid, and not wanted":  {`{}, {cr: spec: size: 10}`, []string{`shop.cue:6: steps[1]: spec.size: invalid value 10 (out of bound <=9)`}},
		"an object that somebody changes is mended": {`{}, {live: data: cm: data: name: "bob", want: {live: data: cm: data: name: "ann", writes: updated: 1}}`, nil},
		"an object that somebody deletes is made":   {`{}, {live: data: cm: null, want: {live: data: cm: data: name: "ann", writes: created: 1}}`, nil},
		"an object that was never rendered":         {`{live: data: pod: null}`, []string{`shop_test.cue:3: steps[0]: live.data.pod: the package has not rendered such an object`}},
		"an object that does not exist":             {`{live: data: cm: data: x: "y"}`, []string{`shop_test.cue:3: steps[0]: live.data.cm: there is no ConfigMap default/shop`}},
		"a component that is excluded is deleted":   {`{}, {cr: spec: open: false, want: {live: door: cm: null, writes: deleted: 1, absent: door: true}}`, nil},
		"an input that changes":                     {`{}, {others: t: data: token: "U", want: live: door: cm: data: token: "U"}`, nil},
		"an input that is misspelled":               {`{}, {others: tt: data: token: "U"}`, []string{`shop_test.cue:3: steps[1]: others.tt: given.others has no such object, so that it is a new one, and it has no apiVersion (an object of others needs apiVersion, kind and metadata.name, as in apiVersion: "v1")`}},
		"an input that loses its kind":              {`{}, {others: t: kind: null}`, []string{`shop_test.cue:3: steps[1]: others.t: it has no kind (an object of others needs apiVersion, kind and metadata.name, as in kind: "ConfigMap")`}},
		"an input that goes":                        {`{}, {others: t: null, want: {ready: false, components: door: state: "Waiting"}}`, nil},
		"an input that comes back":                  {`{others: t: null}, {others: t: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "token", data: token: "V"}, want: live: door: cm: data: token: "V"}`, nil},
		"a configuration that changes":              {`{}, {config: greeting: "hi", want: live: data: cm: data: greeting: "hi"}`, nil},
		"the resource is deleted":                   {`{}, {delete: true, want: {gone: true, live: data: cm: null, writes: deleted: 4}}`, nil},
		"the resource is gone before":               {`{delete: true}, {cr: spec: size: 4}`, []string{`shop_test.cue:3: steps[1]: cr: there is no Shop default/example`}},
		"the content of a Secret is not shown":      {`{want: live: data: secret: data: password: "hunter2"}`, []string{`shop_test.cue:6: steps[0].live.data.secret.data.password: want other content, got content that is not shown`}},
		"the operator dies after its third write":   {`{faults: crashAfter: [3], want: {ready: true, writes: {created: 4, updated: 0, deleted: 0}}}`, nil},
		"it dies again and again":                   {`{faults: crashAfter: [2, 1, 1, 2], want: {ready: true, writes: created: 4}}`, nil},
		"the response of a write is lost":           {`{faults: loseAt: 3, want: {ready: true, writes: created: 4}}`, nil},
		"a write is refused":                        {`{faults: refuseAt: 3, want: {ready: true, writes: created: 4}}`, nil},
		"its cache is behind":                       {`{}, {cr: spec: size: 4, run: "once", faults: frozenCache: true, want: live: data: cm: data: size: "3"}, {want: live: data: cm: data: size: "4"}`, nil},
		"its cache catches up":                      {`{}, {cr: spec: size: 4, faults: frozenCache: true, want: {ready: true, live: data: cm: data: size: "4", writes: {created: 0, updated: 1, deleted: 0}}}`, nil},
		"its cache is behind from the start":        {`{faults: frozenCache: true, want: {ready: true, writes: {created: 4, updated: 0, deleted: 0}}}`, nil},
		"it dies while its cache is behind":         {`{}, {cr: spec: size: 4, faults: {frozenCache: true, crashAfter: [1, 1]}, want: {ready: true, live: data: cm: data: size: "4"}}`, nil},
		"its cache is behind as it is deleted":      {`{}, {delete: true, faults: frozenCache: true, want: {gone: true, writes: deleted: 4}}`, nil},
		"a crash that no write causes":              {`{}, {faults: {frozenCache: true, crashAfter: [99]}}`, []string{`shop_test.cue:6: steps[1].faults: crash after write 99: that has not happened, the step has 0 writes`}},
		"a fault that does not happen":              {`{faults: {crashAfter: [99], loseAt: 2}, want: ready: true}`, []string{`shop_test.cue:6: steps[0].faults: crash after write 99: that has not happened, the step has 9 writes`}},
		"a pattern over live objects":               {`{want: live: [string]: cm: data: size: "3"}`, []string{`shop_test.cue:6: steps[0].live.door.cm.data.size: want "3", and there is none, but token`}},
		"no controller acts":                        {`{controllers: "never", want: {ready: true}}`, nil},
		"a step that is not concrete":               {`{cr: spec: size: int}`, []string{`shop_test.cue:6: tests.t.steps[0].cr.spec.size: required, but not set (must be int)`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, d := range run(t, "package shop\n\ntests: t: {"+given+"steps: [\n"+c.steps+"\n]}\n")[0].Differences {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

// TestATestThatIsWrittenWronglyFailsAlone has a test that the contract does not accept beside one that it does.
func TestATestThatIsWrittenWronglyFailsAlone(t *testing.T) {
	t.Parallel()
	const given = `given: cr: spec: name: "ann"`
	for name, c := range map[string]struct {
		reason string
		test   string
		want   []string
	}{
		"a field that a test does not have": {
			reason: "the misspelled name is said with what was meant",
			test:   given + "\nwants: {}",
			want:   []string{`shop_test.cue:4: tests."it is wrong".wants: unknown field (did you mean want?)`},
		},
		"a field that a want does not have": {
			reason: "it is one far below the test, too",
			test:   given + "\nwant: {\nobject: {}\n}",
			want:   []string{`shop_test.cue:5: tests."it is wrong".want.object: unknown field (did you mean objects?)`},
		},
		"a field that a step does not have": {
			reason: "an element of a list is no other than a field",
			test:   given + "\nsteps: [{}, {fault: {}}]",
			want:   []string{`shop_test.cue:4: tests."it is wrong".steps[1].fault: unknown field (did you mean faults?)`},
		},
		"a value of another type": {
			reason: "what contradicts the contract is no fault of the package",
			test:   given + "\nwant: error: 5",
			want:   []string{`shop_test.cue:4: tests."it is wrong".want.error: invalid value 5 (must be string)`},
		},
		"two faults": {
			reason: "each has its line",
			test:   given + "\nwants: {}\ngivn: {}",
			want: []string{
				`shop_test.cue:4: tests."it is wrong".wants: unknown field (did you mean want?)`,
				`shop_test.cue:5: tests."it is wrong".givn: unknown field (did you mean given?)`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, tests := loadTests(t, shop, "package shop\n\ntests: \"it is wrong\": {"+c.test+"}\ntests: right: {"+given+"}\n")
			results, _, err := testcase.Run(t.Context(), p, tests)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			for _, r := range results {
				got[r.Name] = nil
				for _, d := range r.Differences {
					got[r.Name] = append(got[r.Name], d.String())
				}
			}
			if diff := cmp.Diff(map[string][]string{"it is wrong": c.want, "right": nil}, got); diff != "" {
				t.Errorf("%s: differences (-want +got):\n%s", c.reason, diff)
			}
			found, err := testcase.Explore(t.Context(), p, tests, testcase.ExploreOptions{Bound: 1})
			if err != nil || found[0].Error == "" || found[1].Error != "" {
				t.Errorf("%s: explored, they are %+v, error %v", c.reason, found, err)
			}
		})
	}
}

// TestAPackageThatDoesNotLoadHasNoTests: no test says what is wrong with the package.
func TestAPackageThatDoesNotLoadHasNoTests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ reason, program, tests, want string }{
		"a fault of the package":             {"it is none of a test", shop + "componets: {}\n", "tests: t: {}", `componets`},
		"a fault of both":                    {"who mends one wants to see the other", shop + "componets: {}\n", "tests: t: wants: {}", `wants`},
		"a name that is nowhere":             {"the file says nothing that could be read", shop, "tests: t: given: cr: spec: nobody", `nobody`},
		"a hidden field that is ambiguous":   {"every test may refer to it", shop, "_x: 1 & 2\ntests: t: {}", `_x`},
		"a part of the package in the tests": {"it would be there only with them", shop, "componets: {}\ntests: t: {}", `componets`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := testcase.Load(snapshotOf(t, c.program, "package shop\n\n"+c.tests+"\n"))
			if faults, are := errors.AsType[fault.Faults](err); !are || !strings.Contains(faults.Error(), c.want) {
				t.Errorf("%s: %v, want faults with %q", c.reason, err, c.want)
			}
		})
	}
}

// run runs the tests of a file beside the package.
func run(t *testing.T, tests string) []testcase.Result {
	t.Helper()
	p, read := loadTests(t, shop, tests)
	results, _, err := testcase.Run(t.Context(), p, read)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// loadTests returns a package of one file, and the tests of another one beside it.
func loadTests(t *testing.T, text, tests string) (*program.Program, []testcase.Test) {
	t.Helper()
	p, read, err := testcase.Load(snapshotOf(t, text, tests))
	if err != nil {
		t.Fatal(err)
	}
	return p, read
}

// snapshotOf returns the files of a package and of its tests.
func snapshotOf(t *testing.T, text, tests string) *source.Snapshot {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop")
	err := errors.Join(
		os.Mkdir(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "shop.cue"), []byte(text), 0o600),
		os.WriteFile(filepath.Join(dir, "shop_test.cue"), []byte(tests), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := source.Loader{}.FolderWithTests(dir)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}
