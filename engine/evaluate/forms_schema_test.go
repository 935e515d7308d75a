package evaluate_test

// inSchemas are forms of the schema of the resource. A constraint there has to be checked for each session,
// also if it stands in no field of a resource.
var inSchemas = []form{
	{"schema with an if", "", "", "", `#Spec: {mode: _, size: _, if mode == "a" {size: >=3}}`},
	{"schema with an if in a struct", "", "", "", `#Spec: any?: {k: string, l: _, if k == "v2" {l: [>=2, ...]}, ...}`},
	{"schema with an if that is wrong", "", "", "", `#Spec: {size: _, if size > 4 {_bad: "x" & "y"}}`},
	{"schema with an if in a list", "", "", "", `#Spec: {size: _, hosts: [if size > 4 {"h2"}, ...string]}`},
	{"schema with an assertion in a hidden field", "", "", "", `#Spec: {size: _, _ok: true & (size < 5)}`},
	{"schema with an assertion in a hidden struct", "", "", "", `#Spec: {size: _, _checks: small: true & (size < 5)}`},
	{"schema with an assertion in a definition", "", "", "", `#Spec: {size: _, #ok: true & (size < 5)}`},
	{"schema with an assertion in an element", "", "", "", `#Spec: ports?: [...{n: int, t?: string, _ok: true & (n < 5)}]`},
	{"schema with an assertion in a map", "", "", "", `#Spec: pools?: {a: _, b: _, _ok: true & (a < 5)}`},
	{"schema with a bound by another field", "", "", "", `#Spec: {size: _, ratio: >(size-4)}`},
	{"schema with a bound by an index", "", "", "", `#Spec: {mode: _, size: {a: <3, b: <9}[mode]}`},
	{"resource with an if", "", "", "", `cr: {spec: _, if spec.size > 4 {spec: name: "w-1"}}`},
}

// inDefinitions are assertions in definitions and hidden fields.
var inDefinitions = []form{
	{"assertion in a definition of an object", "", `#ok: true & (cr.spec.size < 5)`, "", ""},
	{"assertion in a definition of data", "", `data: {a: "x", #ok: true & (cr.spec.size < 5)}`, "", ""},
	{"assertion in a definition of an object that is missing", "", `data: a: ` + liveData + `.a, #ok: true & (cr.spec.size < 5)`, "", ""},
	{"assertion in a definition of an element", "", `x: [{a: "x", #ok: true & (cr.spec.size < 5)}]`, "", ""},
	{"assertion in a definition of the objects", "", "", `objects: #ok: true & (cr.spec.size < 5)`, ""},
	{"assertion in a hidden field of the status", "", "", "", `status: {y: 1, _ok: true & (cr.spec.size < 5)}`},
	{"assertion in a definition of the status", "", "", "", `status: {y: 1, #ok: true & (cr.spec.size < 5)}`},
	{"assertion in a definition of a struct of the status", "", "", "", `status: y: {z: 1, #ok: true & (cr.spec.size < 5)}`},
	{"definition with a parameter in an object", "", `#F: {in: string, out: "f-\(in)"}, data: a: (#F & {in: cr.spec.name}).out`, "", ""},
}
