"""What may somebody publish who knows the truth: releases of a trusted curator, with a level per person."""
