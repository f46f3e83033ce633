package memory

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/journal"
)

// A record is encoded as a ledger is: a version byte and a gzip stream. The stream holds
// term, number and instant, the number of limits, each with its name and fields, and the
// number of entries, each with the number of its limit in that order, its hash and fields.
const recordVersion = 1

// Bounds of a record.
const maxLimits = 1 << 10

// Flags of limits and entries.
const (
	overflowFlag = 1 << iota
	closedFlag
	sharedFlag
	stateFlag
)

func encodeRecord(r *journal.Record) ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte(recordVersion)
	stream, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	e := encoder{w: bufio.NewWriterSize(stream, 1<<14)}
	e.record(r)
	if err := errors.Join(e.w.Flush(), stream.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (e *encoder) record(r *journal.Record) {
	e.integers(int64(r.Term), int64(r.Seq), int64(r.At), int64(len(r.Limits)))
	names := slices.Sorted(maps.Keys(r.Limits))
	number := map[string]int64{}
	for i, name := range names {
		l := r.Limits[name]
		number[name] = int64(i)
		e.text(name)
		e.integers(int64(l.Since), int64(l.Unlisted.From), int64(l.Unlisted.To), int64(l.Longest), l.Aside,
			flag(l.Overflow, overflowFlag)|flag(l.Closed, closedFlag))
		e.charges(l.Charges)
	}
	e.integer(int64(len(r.Keys)))
	for _, k := range slices.SortedFunc(maps.Keys(r.Keys), func(a, b journal.Key) int {
		return cmp.Or(cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Hash, b.Hash))
	}) {
		entry := r.Keys[k]
		e.integer(number[k.Limit])
		e.hash(k.Hash)
		e.integers(flag(entry.Shared, sharedFlag)|flag(entry.State.N > 0, stateFlag), entry.Lost, entry.Aside)
		e.charges(entry.Charges)
		if entry.State.N > 0 {
			e.state(&entry.State)
		}
	}
}

func flag(set bool, bit int64) int64 {
	if set {
		return bit
	}
	return 0
}

func (e *encoder) charges(list []journal.Charge) {
	e.integer(int64(len(list)))
	for _, c := range list {
		e.integers(int64(c.From), int64(c.At), c.Units)
	}
}

// RecordTerm returns the term that wrote a record.
func RecordTerm(data []byte) (uint64, error) {
	r, err := decodeRecord(data)
	return r.Term, err
}

// RecordEnds returns the instant from which on nothing in a record counts any more.
func RecordEnds(data []byte) (limiter.Instant, error) {
	r, err := decodeRecord(data)
	ends := r.At
	for _, l := range r.Limits {
		ends = max(ends, r.At.Add(3*l.Longest))
	}
	return ends, err
}

func decodeRecord(data []byte) (journal.Record, error) {
	if len(data) == 0 || data[0] != recordVersion {
		return journal.Record{}, fmt.Errorf("the record is not one of version %d, which this build reads", recordVersion)
	}
	stream, err := gzip.NewReader(bytes.NewReader(data[1:]))
	if err != nil {
		return journal.Record{}, fmt.Errorf("the record is damaged: %w", err)
	}
	d := decoder{r: bufio.NewReader(io.LimitReader(stream, maxDecoded))}
	r := d.record()
	d.end()
	if d.err != nil {
		return journal.Record{}, fmt.Errorf("the record is damaged: %w", d.err)
	}
	return r, nil
}

func (d *decoder) record() journal.Record {
	r := journal.Record{
		Term: uint64(d.integer("term", 0, limiter.MaxExact)), Seq: uint64(d.integer("number", 0, limiter.MaxExact)),
		At: d.instant("instant"), Limits: map[string]journal.Limit{}, Keys: map[journal.Key]journal.Entry{},
	}
	var names []string
	for range d.integer("number of limits", 0, maxLimits) {
		name := d.text("limit")
		l := journal.Limit{
			Since: d.instant("since"), Unlisted: limiter.Gap{From: d.instant("unlisted"), To: d.instant("unlisted")},
			Longest: limiter.Micros(d.integer("window", 0, int64(limiter.MaxWindow))), Aside: d.integer("aside", 0, limiter.MaxExact),
		}
		flags := d.integer("flags", 0, overflowFlag|closedFlag)
		l.Overflow, l.Closed, l.Charges = flags&overflowFlag != 0, flags&closedFlag != 0, d.charges()
		names, r.Limits[name] = append(names, name), l
	}
	for range d.integer("number of entries", 0, maxDecoded) {
		limit := d.integer("limit", 0, int64(len(names))-1)
		if d.err != nil {
			break
		}
		k := journal.Key{Limit: names[limit], Hash: d.hash()}
		flags := d.integer("flags", 0, sharedFlag|stateFlag)
		e := journal.Entry{
			Shared: flags&sharedFlag != 0, Lost: d.integer("lost", 0, limiter.MaxExact),
			Aside: d.integer("aside", 0, limiter.MaxExact), Charges: d.charges(),
		}
		if flags&stateFlag != 0 {
			e.State = d.state()
		}
		r.Keys[k] = e
	}
	return r
}

func (d *decoder) charges() []journal.Charge {
	var list []journal.Charge
	for range d.integer("number of charges", 0, maxEntries) {
		list = append(list, journal.Charge{From: d.instant("charge"), At: d.instant("charge"), Units: d.integer("units", 0, limiter.MaxExact)})
	}
	return list
}
