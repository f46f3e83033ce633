package birth_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/birth"
	"github.com/weir-dev/weir/pkg/limiter"
)

var (
	few  = []string{"a", "b"}
	many = []string{"a", "b", "c"}
)

// vouches returns the list of a vouch for a memory, of none when that is 0.
func vouches(t *testing.T, b birth.Birth, members []string, memory int64) int64 {
	t.Helper()
	born, list := b.Vouch(members)
	if born != memory || (list == 0) != (memory == 0) || list < 0 || list > limiter.MaxExact {
		t.Errorf("%+v vouches for %d, with list %d of %v; want %d", b, born, list, members, memory)
	}
	return list
}

func TestAMemberVouchesForTheFirstMemoryThatItMet(t *testing.T) {
	b := birth.New("store", few)
	vouches(t, b, few, 0)
	if !b.Unmet() || b.Meet(7).Unmet() {
		t.Errorf("%+v", b)
	}
	b = b.Meet(7).Meet(8)
	list := vouches(t, b, few, 7)
	if again := vouches(t, b.Follow("store", few), few, 7); again != list {
		t.Errorf("the same members are %d and %d", list, again)
	}
	if more := vouches(t, b, many, 7); more == list {
		t.Errorf("other members are %d, too", more)
	}
	if merged := vouches(t, birth.New("store", nil).Meet(7), []string{"ab"}, 7); merged == list {
		t.Errorf("names that run together are %d, too", merged)
	}
}

func TestAMemberThatWasListedOnceIsAlwaysAsked(t *testing.T) {
	b := birth.New("store", few).Meet(7).Follow("store", many)
	vouches(t, b, many, 7)
	vouches(t, b, few, 0)
	gone := b.Follow("store", few)
	vouches(t, gone, few, 0)
	vouches(t, gone.Follow("store", many).Meet(7), many, 0)
}

func TestABudgetThatIsKeptElsewhereIsNotVouchedFor(t *testing.T) {
	b := birth.New("store", few).Meet(7)
	vouches(t, b.Follow("another", few).Follow("store", few), few, 0)
	vouches(t, birth.Birth{}.Follow("store", few).Meet(7), few, 0)
	if !b.Equal(b.Follow("store", few)) || b.Equal(b.Follow("store", many)) || b.Equal(birth.Birth{}) {
		t.Error("births are compared by another rule than their fields")
	}
}
