// Package copies copies fields, and not all of that is tested.
package copies

type from struct {
	Size, Weight int64
	Name, Note   string
	Inner        struct{ Depth, Turns int }
}

func (f *from) GetNote() string { return f.Note }

type to struct {
	Size, Twice int
	Weight      *int64
	Name, Note  string
	Depth, Kind int
}

const kind = 7

func convert(f *from) to {
	t := to{Size: int(f.Size), Twice: 2 * int(f.Size), Kind: kind, Note: f.GetNote(), Weight: &f.Weight}
	t.Name, t.Depth = f.Name, f.Inner.Depth
	return t
}

func unused(f *from) map[string]to { return map[string]to{f.Name: {Name: f.Name}} }

func turning(f *from) to { return to{Twice: f.Inner.Turns} }
