package stamp

import "testing"

func TestSlotRoundsDown(t *testing.T) {
	t.Parallel()
	for at, want := range map[int64]int32{-11: -2, -10: -1, -1: -1, 0: 0, 9: 0, 10: 1} {
		if got := int32(Slot(at, 10)); got != want {
			t.Errorf("Slot(%d) = %d, want %d", at, got, want)
		}
	}
}
