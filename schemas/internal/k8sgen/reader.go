package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path"
	"reflect"
	"strconv"
	"strings"

	"cuelang.org/go/cue/literal"
)

// A reader turns the declarations of one package into decls.
type reader struct {
	pkg     *pkg
	consts  map[*ast.Ident]*types.Const
	imports map[string]string // of the current file: local name to import path
	group   string
}

// file reads the declarations of one file, in order.
func (r *reader) file(f *ast.File) {
	r.imports = map[string]string{}
	for _, spec := range f.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		r.imports[name] = p
	}
	for _, d := range f.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			r.spec(gen, spec)
		}
	}
}

// spec reads one type or group of constants.
func (r *reader) spec(gen *ast.GenDecl, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		doc := spec.Doc
		if doc == nil && !gen.Lparen.IsValid() {
			doc = gen.Doc
		}
		if spec.Name.IsExported() {
			r.typeSpec(spec, parseDoc(doc))
		}
	case *ast.ValueSpec:
		if gen.Tok != token.CONST {
			return
		}
		for _, id := range spec.Names {
			r.constant(id, parseDoc(cmp.Or(spec.Doc, spec.Comment)))
		}
	}
}

// constant reads one constant.
func (r *reader) constant(id *ast.Ident, doc comment) {
	c, ok := r.consts[id]
	if !ok || !id.IsExported() {
		return
	}
	if id.Name == "GroupName" {
		r.group = constant.StringVal(c.Val())
	}
	d := &decl{name: id.Name, doc: doc.text, shape: constShape}
	if named, ok := c.Type().(*types.Named); ok && named.Obj().Pkg() != nil {
		d.constOf = ref{named.Obj().Pkg().Path(), named.Obj().Name()}
	}
	switch v := c.Val(); v.Kind() {
	case constant.String:
		d.values = []string{literal.String.Quote(constant.StringVal(v))}
	case constant.Int, constant.Bool, constant.Float:
		d.values = []string{v.ExactString()}
	default:
		return
	}
	r.add(d)
}

// typeSpec reads one type. It skips types that are not data, such as interfaces and functions.
func (r *reader) typeSpec(spec *ast.TypeSpec, doc comment) {
	id := ref{r.pkg.goPath, spec.Name.Name}
	d := &decl{name: id.name, doc: doc.text, enum: doc.has("enum")}
	if o, ok := overrides[id]; ok {
		d.doc, d.shape, d.typ = []string{o.doc}, typeShape, typ{expr: o.expr}
		if o.opaque {
			d.shape, d.typ = structShape, typ{expr: o.expr}
		}
		r.add(d)
		return
	}
	switch t := spec.Type.(type) {
	case *ast.InterfaceType, *ast.FuncType, *ast.ChanType:
		return
	case *ast.StructType:
		d.fields = r.fields(t)
	case *ast.SelectorExpr:
		d.same = r.selector(t)
	default:
		d.shape, d.typ = typeShape, r.typ(t)
	}
	r.add(d)
}

// add adds a declaration. It skips a second one of the same name, which is for another build tag.
func (r *reader) add(d *decl) {
	if r.pkg.byName[d.name] != nil {
		return
	}
	r.pkg.decls = append(r.pkg.decls, d)
	r.pkg.byName[d.name] = d
}

// fields returns the members of a struct that have a JSON form.
func (r *reader) fields(t *ast.StructType) []field {
	var fields []field
	for _, member := range t.Fields.List {
		tag := jsonTag(member)
		if tag.skip || (len(member.Names) > 0 && !member.Names[0].IsExported()) {
			continue
		}
		doc := parseDoc(member.Doc)
		fields = append(fields, field{
			name:     tag.name,
			doc:      doc.text,
			typ:      r.typ(member.Type),
			required: doc.has("required") || (!tag.omit && !doc.has("optional")),
			embedded: len(member.Names) == 0 && tag.name == "",
		})
	}
	return fields
}

// typ translates a Go type expression.
func (r *reader) typ(e ast.Expr) typ {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return r.typ(e.X)
	case *ast.StarExpr:
		return r.typ(e.X)
	case *ast.Ident:
		if b, ok := basics[e.Name]; ok {
			return typ{expr: b}
		}
		return typ{kind: namedKind, ref: ref{r.pkg.goPath, e.Name}}
	case *ast.SelectorExpr:
		id := r.selector(e)
		if x, ok := externals[id]; ok {
			return typ{expr: x}
		}
		return typ{kind: namedKind, ref: id}
	case *ast.ArrayType:
		if id, ok := e.Elt.(*ast.Ident); ok && id.Name == "byte" {
			return typ{expr: bytesExpr}
		}
		elem := r.typ(e.Elt)
		return typ{kind: listKind, elem: &elem}
	case *ast.MapType:
		elem := r.typ(e.Value)
		return typ{kind: mapKind, elem: &elem}
	default:
		return typ{kind: unknownKind, expr: fmt.Sprintf("%T", e)}
	}
}

// selector resolves a name of another package.
func (r *reader) selector(e *ast.SelectorExpr) ref {
	if x, ok := e.X.(*ast.Ident); ok {
		return ref{r.imports[x.Name], e.Sel.Name}
	}
	return ref{}
}

// A tag says how encoding/json treats a struct member.
type tag struct {
	name       string
	omit, skip bool
}

// jsonTag reads the tag of a member. A member without one is not part of the JSON form, unless it is
// embedded.
func jsonTag(member *ast.Field) tag {
	if member.Tag == nil {
		return tag{skip: len(member.Names) > 0}
	}
	text, _ := strconv.Unquote(member.Tag.Value)
	value, ok := reflect.StructTag(text).Lookup("json")
	if !ok {
		return tag{skip: len(member.Names) > 0}
	}
	if value == "-" {
		return tag{skip: true}
	}
	name, options, _ := strings.Cut(value, ",")
	return tag{name: name, omit: strings.Contains(options, "omit")}
}
